"""Complete pairs: the blocks of a cell in which both variants ran, side by side and in block order."""

from __future__ import annotations

import dataclasses

import numpy as np

from gpubench.stats.runs import Bools, Floats, Ints, RunNumbers
from gpubench.stats.settings import Summary

BASELINE, CANDIDATE = 0, 1


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Arrays of shape (cells, width) or (cells, width, 2); the last axis is baseline, candidate.

    Only the first ``blocks`` entries of a row count; what stands behind them is meaningless.

    Args:
        numbers: of the runs, each array (cells, width, 2).
        blocks: complete pairs of each cell, shape (cells,).
        first: who ran first: 1 the baseline, -1 the candidate, 0 unknown.
        group: pairs of the same (nodes, block) carry the same number, from 0; they share a sign flip.
    """

    numbers: RunNumbers
    blocks: Ints
    first: Ints
    group: Ints

    @property
    def mask(self) -> Bools:
        """Which entries count, shape (cells, width)."""
        counts: Bools = np.arange(self.first.shape[1])[None, :] < self.blocks[:, None]
        return counts

    def differences(self, summary: Summary) -> Floats:
        """Candidate minus baseline in logs, 0 where there is no pair; shape (cells, width)."""
        number = self.numbers.summary(summary)
        return np.where(self.mask, number[..., CANDIDATE] - number[..., BASELINE], 0.0)

    def head(self, blocks: int | Ints) -> Pairs:
        """The first pairs only: what an earlier look has seen, or what counts for a frozen cell."""
        return dataclasses.replace(self, blocks=np.minimum(self.blocks, blocks))

    def select(self, cells: Ints | Bools) -> Pairs:
        """Some of the cells."""
        return Pairs(
            self.numbers.map(lambda array: array[cells]), self.blocks[cells], self.first[cells], self.group[cells]
        )


def complete_pairs(numbers: RunNumbers, ran: Bools, first: Ints, group: Ints) -> Pairs:
    """Leave out blocks in which only one variant ran, and close the gaps; the order of blocks stays.

    Args:
        numbers: arrays of shape (cells, blocks, 2), blocks ascending.
        ran: whether that run ended ``ok`` with samples, same shape.
        first: as in Pairs, shape (cells, blocks).
        group: as in Pairs, shape (cells, blocks).
    """
    both = ran.all(axis=2)
    position = np.argsort(~both, axis=1, kind="stable")
    return Pairs(
        numbers.map(lambda array: np.take_along_axis(array, position[..., None], axis=1)),
        both.sum(axis=1),
        np.take_along_axis(first, position, axis=1),
        np.take_along_axis(group, position, axis=1),
    )


def count(mask: Bools) -> Ints:
    """How many entries of each cell count; the mask has shape (cells, ...), the result (cells,)."""
    counts: Ints = np.sum(mask, axis=tuple(range(1, mask.ndim)), dtype=np.int64)
    return counts


def masked_mean(values: Floats, mask: Bools) -> Floats:
    """Mean over the second axis of what counts; 0 where nothing does."""
    mean: Floats = np.sum(np.where(mask, values, 0.0), axis=1) / np.maximum(count(mask), 1)
    return mean


def masked_sd(values: Floats, mask: Bools) -> Floats:
    """Standard deviation (n - 1) over the second axis of what counts; 0 below two values."""
    centred = np.where(mask, values - masked_mean(values, mask)[:, None], 0.0)
    sd: Floats = np.sqrt(np.sum(centred**2, axis=1) / np.maximum(count(mask) - 1, 1))
    return sd
