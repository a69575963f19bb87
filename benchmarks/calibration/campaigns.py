"""Simulated campaigns as the verdict rule's arrays: many are judged in one call, each a family of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.calibration.noise import Floats, Ints, Noise, Shape, balanced_first, simulate, source
from gpubench.stats.decision import CellCircumstances, Decisions, decide
from gpubench.stats.paired_blocks import CANDIDATE, Pairs, complete_pairs
from gpubench.stats.runs import number_runs
from gpubench.stats.settings import VerdictSettings

Bools = npt.NDArray[np.bool_]
_SAMPLES_AT_ONCE = 4_000_000


@dataclasses.dataclass(frozen=True)
class Campaigns:
    """Campaigns before any verdict.

    Args:
        times: seconds, shape (campaigns, cells, blocks, 2, reps).
        status: 0 ok, 1 lost, 2 failed, shape (campaigns, cells, blocks, 2).
        first: who ran first, shape (campaigns, blocks).
    """

    times: Floats
    status: Ints
    first: Ints

    @property
    def family(self) -> Ints:
        """Number of the campaign of each cell."""
        return np.repeat(np.arange(self.times.shape[0]), self.times.shape[1])

    def pairs(self) -> Pairs:
        """Complete pairs of all cells of all campaigns."""
        campaigns, cells, blocks = self.times.shape[:3]
        rows = campaigns * cells
        return complete_pairs(
            number_runs(self.times.reshape(rows, *self.times.shape[2:])),
            self.status.reshape(rows, blocks, 2) == 0,
            np.repeat(self.first, cells, axis=0),
        )

    def circumstances(self, pairs: Pairs) -> CellCircumstances:
        """Failures and order of all cells."""
        status = self.status.reshape(-1, *self.status.shape[2:])
        failed = ((status[..., CANDIDATE] == 2) & (status[..., 0] == 0)).sum(axis=1)
        signs = np.where(pairs.mask, pairs.first, 0).sum(axis=1)
        disordered = (pairs.blocks > 0) & (np.abs(signs) == pairs.blocks)
        return CellCircumstances(failed, disordered)

    def judged(self, settings: VerdictSettings) -> Decisions:
        """Verdicts of all campaigns at once."""
        pairs = self.pairs()
        return decide(pairs, self.circumstances(pairs), settings, self.family)


def generate(
    seed: int, noise: Noise, shape: Shape, effect: Floats | float = 0.0, tail: float = 0.0
) -> Iterator[Campaigns]:
    """Campaigns in portions that fit into memory.

    Args:
        seed: makes the same campaigns again.
        noise: the model.
        shape: how many.
        effect: log effect of the candidate, per cell or of all.
        tail: share of the candidate's samples that take ``noise.factor`` times longer.
    """
    rng = source(seed, noise, shape)
    size = shape.cells * shape.blocks * 2 * shape.reps
    portion = max(1, _SAMPLES_AT_ONCE // size)
    for start in range(0, shape.campaigns, portion):
        part = dataclasses.replace(shape, campaigns=min(portion, shape.campaigns - start))
        first = balanced_first(rng, part)
        times = simulate(rng, noise, part, first)
        times[..., CANDIDATE, :] *= np.exp(np.broadcast_to(effect, (shape.cells,)))[None, :, None, None]
        if tail:
            straggles = rng.random(times[..., CANDIDATE, :].shape) < tail
            times[..., CANDIDATE, :] *= np.where(straggles, noise.factor, 1.0)
        yield Campaigns(times, _status(rng, noise, times), first)


def _status(rng: np.random.Generator, noise: Noise, times: Floats) -> Ints:
    shape = times.shape[:-1]
    failed = rng.integers(1, 3, shape)
    if noise.lost:
        # A lost run takes all its workloads with it.
        gone = np.broadcast_to(rng.random((shape[0], 1, *shape[2:])) < noise.lost, shape)
        return np.where(gone, failed[:, :1], 0)
    if noise.lost_when_slow:
        level = np.log(times).mean(axis=-1)
        slowness = (level - level.mean(axis=(2, 3), keepdims=True)) / level.std(axis=(2, 3), keepdims=True)
        chance = np.minimum(noise.lost_when_slow * np.exp(slowness), 0.5)
        return np.where(rng.random(shape) < chance, failed, 0)
    return np.zeros(shape, dtype=np.int64)
