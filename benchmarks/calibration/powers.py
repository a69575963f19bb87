"""What is found when something is there: chances of each verdict for one cell with an effect."""

from __future__ import annotations

import dataclasses

import numpy as np

from benchmarks.calibration.campaigns import generate
from benchmarks.calibration.noise import Noise, Shape
from gpubench.stats.decision import BROKEN, EQUIVALENT, REGRESSION, Decisions
from gpubench.stats.paired_blocks import CANDIDATE
from gpubench.stats.settings import VerdictSettings


@dataclasses.dataclass(frozen=True)
class Found:
    """Shares of campaigns, for their first cell, and its mean estimated effect as a ratio minus one."""

    regression: float
    equivalent: float
    broken: float
    effect: float


def find(seed: int, noise: Noise, shape: Shape, slower: float = 0.0, tail: float = 0.0) -> Found:
    """Campaigns whose first cell is slower by ``slower`` (ratio minus one), or whose candidate straggles everywhere."""
    effect = np.zeros(shape.cells)
    effect[0] = np.log1p(slower)
    portions = [portion.judged(VerdictSettings()) for portion in generate(seed, noise, shape, effect, tail)]
    return _first_cells(portions, shape)


def die(seed: int, noise: Noise, shape: Shape, share: float, exactly: bool) -> Found:
    """Campaigns whose candidate dies in a share of the blocks: in each by chance, or in exactly that many."""
    rng = np.random.default_rng([seed, 1])
    portions = []
    for campaigns in generate(seed, noise, shape):
        chances = rng.random((campaigns.times.shape[0], shape.blocks))
        dies = chances.argsort(axis=1).argsort(axis=1) < np.ceil(share * shape.blocks) if exactly else chances < share
        status = campaigns.status.copy()
        status[..., CANDIDATE] = np.where(dies[:, None, :], 2, 0)
        portions.append(dataclasses.replace(campaigns, status=status).judged(VerdictSettings()))
    return _first_cells(portions, shape)


def _first_cells(portions: list[Decisions], shape: Shape) -> Found:
    comparisons = shape.cells * (shape.variants - 1)
    word = np.concatenate([portion.word[::comparisons] for portion in portions])
    effect = np.concatenate([portion.estimates.difference.effect[::comparisons] for portion in portions])
    regression, equivalent, broken = (float(np.mean(word == which)) for which in (REGRESSION, EQUIVALENT, BROKEN))
    return Found(regression, equivalent, broken, float(np.expm1(effect.mean())))
