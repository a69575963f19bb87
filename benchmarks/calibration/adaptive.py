"""Adaptive campaigns: looked at after 5, 6, 8, ... blocks, decided cells frozen and not run again."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import stats

from benchmarks.calibration.campaigns import Campaigns, generate
from benchmarks.calibration.noise import Noise, Shape
from gpubench.stats.gate import INCONCLUSIVE, REGRESSION, WORDS, decide
from gpubench.stats.sequential import schedule
from gpubench.stats.settings import Looks, Settings


@dataclasses.dataclass(frozen=True)
class Ended:
    """Adaptive campaigns at their end; arrays of shape (campaigns, cells).

    Args:
        word: index into the gate's WORDS.
        blocks: complete pairs that each cell has used.
        rejected: the test has rejected (whatever the verdict).
        covered: the repeated confidence interval holds the truth.
    """

    word: np.ndarray
    blocks: np.ndarray
    rejected: np.ndarray
    covered: np.ndarray

    @property
    def alarm_rate(self) -> float:
        """Share of campaigns with any rejection."""
        return float(self.rejected.any(axis=1).mean())

    @property
    def alarm_upper(self) -> float:
        """Clopper-Pearson one-sided 95 % upper bound of the rate."""
        alarmed = int(self.rejected.any(axis=1).sum())
        test = stats.binomtest(alarmed, len(self.rejected), alternative="less")
        return float(test.proportion_ci(0.95).high)

    def share(self, word: str) -> float:
        """Share of first cells with this verdict."""
        return float(np.mean(self.word[:, 0] == WORDS.index(word)))


def run_adaptive(
    seed: int, noise: Noise, shape: Shape, slower: float = 0.0, *, margin: float = 0.03, budget: int | None = None
) -> Ended:
    """Campaigns of at most ``shape.blocks`` blocks; with a budget they end after that many, whatever the data."""
    effect = np.zeros(shape.cells)
    effect[0] = np.log1p(slower)
    portions = [
        _run(campaigns, effect, margin, shape.blocks, budget) for campaigns in generate(seed, noise, shape, effect)
    ]
    names = [field.name for field in dataclasses.fields(Ended)]
    return Ended(**{name: np.concatenate([getattr(portion, name) for portion in portions]) for name in names})


def _run(campaigns: Campaigns, effect: np.ndarray, margin: float, maximum: int, budget: int | None) -> Ended:
    pairs, size = campaigns.pairs(), campaigns.times.shape[:2]
    circumstances = campaigns.circumstances(pairs)
    # By block number: a cell with a lost run has fewer pairs than blocks when it is looked at.
    there = _pairs_by_block(campaigns)
    frozen = np.full(len(pairs.blocks), maximum)
    looks = [look for look in schedule(maximum) if budget is None or look < budget] + ([budget] if budget else [])
    for look in looks:
        settings = Settings(margin=margin, look=Looks(maximum, ended=look == looks[-1]))
        seen = np.minimum(there[:, look - 1], frozen)
        decisions = decide(pairs.head(seen), circumstances, settings, campaigns.family)
        frozen = np.where((decisions.word != INCONCLUSIVE) & (frozen == maximum), seen, frozen)
    half_width = decisions.estimates.half_width
    truth = np.tile(effect, size[0])
    rejected = np.nan_to_num(decisions.p_holm, nan=1.0) <= settings.alpha
    covered = ~(np.abs(decisions.estimates.location.effect - truth) > half_width)
    columns = (decisions.word, decisions.estimates.location.blocks, rejected, covered)
    return Ended(*(column.reshape(size) for column in columns))


def _pairs_by_block(campaigns: Campaigns) -> np.ndarray:
    both = (campaigns.status == 0).all(axis=-1)
    return np.cumsum(both.reshape(-1, both.shape[-1]), axis=1)


@dataclasses.dataclass(frozen=True)
class Saving:
    """Adaptive against the fixed plan that decides the first cell rightly as often.

    Args:
        right: share of first cells decided rightly.
        cell_blocks: mean blocks per cell.
        equal: blocks per cell of the fixed plan of equal power, interpolated.
    """

    right: float
    cell_blocks: float
    equal: float

    @property
    def saved(self) -> float:
        """Share of cell-blocks saved."""
        return 1 - self.cell_blocks / self.equal


def compare_with_fixed(ended: Ended, slower: float, fixed: list[float]) -> Saving:
    """Find the fixed plan of equal power; ``fixed`` holds its chances for 5, 6, ... blocks."""
    right = float(np.mean(ended.word[:, 0] == (REGRESSION if slower else WORDS.index("equivalent"))))
    rising = np.maximum.accumulate(fixed)
    equal = float(np.interp(right, rising, np.arange(5, 5 + len(fixed))))
    return Saving(right, float(ended.blocks.mean()), equal)
