"""Simulated campaigns as the verdict rule's arrays: many are judged in one call, each a family of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.calibration.noise import Floats, Ints, Noise, Shape, places, planned_orders, simulate, source
from gpubench.stats.decision import CellCircumstances, Decisions, decide
from gpubench.stats.paired_blocks import BASELINE, CANDIDATE, Pairs, complete_pairs
from gpubench.stats.runs import number_runs
from gpubench.stats.settings import VerdictSettings

Bools = npt.NDArray[np.bool_]
_SAMPLES_AT_ONCE = 4_000_000


@dataclasses.dataclass(frozen=True)
class Campaigns:
    """Campaigns before any verdict.

    Args:
        times: seconds, shape (campaigns, cells, blocks, variants, reps); variant 0 is the baseline.
        status: 0 ok, 1 lost, 2 failed, shape (campaigns, cells, blocks, variants).
        orders: the variant at each place of each block, shape (campaigns, blocks, variants).
        seeds: of the plans that have these orders, shape (campaigns,).
    """

    times: Floats
    status: Ints
    orders: Ints
    seeds: Ints

    @property
    def comparisons(self) -> int:
        """Rows of one campaign: each cell with each candidate, candidates of a cell beside each other."""
        return int(self.times.shape[1] * (self.times.shape[3] - 1))

    @property
    def family(self) -> Ints:
        """Number of the campaign of each comparison."""
        return np.repeat(np.arange(self.times.shape[0]), self.comparisons)

    @property
    def first(self) -> Ints:
        """Who ran first: 1 the baseline, -1 the candidate; shape (campaigns, candidates, blocks)."""
        place = places(self.orders)
        return np.moveaxis(np.sign(place[..., 1:] - place[..., :1]), 2, 1)

    def pairs(self) -> Pairs:
        """Complete pairs of all comparisons of all campaigns."""
        first = np.repeat(self.first[:, None], self.times.shape[1], axis=1)
        return complete_pairs(
            number_runs(_by_comparison(self.times)),
            _by_comparison(self.status) == 0,
            first.reshape(-1, first.shape[-1]),
        )

    def circumstances(self, pairs: Pairs) -> CellCircumstances:
        """Failures and order of all comparisons."""
        status = _by_comparison(self.status)
        failed = ((status[..., CANDIDATE] == 2) & (status[..., BASELINE] == 0)).sum(axis=1)
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
        effect: log effect of the first candidate, per cell or of all.
        tail: share of the first candidate's samples that take ``noise.factor`` times longer.
    """
    rng = source(seed, noise, shape)
    size = shape.cells * shape.blocks * shape.variants * shape.reps
    portion = max(1, _SAMPLES_AT_ONCE // size)
    for start in range(0, shape.campaigns, portion):
        part = dataclasses.replace(shape, campaigns=min(portion, shape.campaigns - start))
        seeds = rng.integers(2**31, size=part.campaigns)
        orders = planned_orders(seeds, part)
        times = simulate(rng, noise, part, orders)
        times[..., CANDIDATE, :] *= np.exp(np.broadcast_to(effect, (shape.cells,)))[None, :, None, None]
        if tail:
            straggles = rng.random(times[..., CANDIDATE, :].shape) < tail
            times[..., CANDIDATE, :] *= np.where(straggles, noise.factor, 1.0)
        yield Campaigns(times, _status(rng, noise, times), orders, seeds)


Array = TypeVar("Array", Floats, Ints)


def _by_comparison(array: Array) -> Array:
    """Shape (campaigns, cells, blocks, variants, ...) as (comparisons, blocks, 2, ...)."""
    candidates = range(1, array.shape[3])
    pairs = np.stack([array[:, :, :, [BASELINE, candidate]] for candidate in candidates], axis=2)
    return pairs.reshape(-1, *pairs.shape[3:])


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
