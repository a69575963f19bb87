"""A against A: how often the test rejects anything in a whole campaign, and how often intervals cover the truth."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy

from benchmarks.calibration.campaigns import Campaigns, generate
from benchmarks.calibration.noise import Noise, Shape
from gpubench.stats.decision import REGRESSION, decide
from gpubench.stats.margin import Margin
from gpubench.stats.settings import VerdictSettings

# Equivalence is judged before difference, so a real margin would hide alarms of the test.
NO_MARGIN = 1e-9


@dataclasses.dataclass(frozen=True)
class Alarms:
    """What A/A campaigns showed.

    Args:
        campaigns: how many.
        alarmed: campaigns with at least one rejection after Holm.
        covered: share of intervals that hold the truth.
        at_margin: campaigns with a regression or improvement at the default margin.
    """

    campaigns: int
    alarmed: int
    covered: float
    at_margin: int

    @property
    def rate(self) -> float:
        """Family-wise rate of false alarms of the test."""
        return self.alarmed / self.campaigns

    @property
    def upper(self) -> float:
        """Clopper-Pearson one-sided 95 % upper bound of the rate."""
        return float(scipy.stats.binomtest(self.alarmed, self.campaigns, alternative="less").proportion_ci(0.95).high)


def count_alarms(seed: int, noise: Noise, shape: Shape) -> Alarms:
    """Each campaign is judged once, when all blocks are there."""
    portions = [_count(portion) for portion in generate(seed, noise, shape)]
    alarmed, at_margin, inside, intervals = np.sum(portions, axis=0).tolist()
    return Alarms(shape.campaigns, alarmed, inside / max(intervals, 1), at_margin)


def _count(campaigns: Campaigns) -> tuple[int, int, int, int]:
    pairs, size = campaigns.pairs(), (len(campaigns.times), campaigns.comparisons)
    circumstances = campaigns.circumstances(pairs)
    tested = decide(pairs, circumstances, VerdictSettings(margin=Margin(NO_MARGIN)), campaigns.family)
    at_margin = decide(pairs, circumstances, VerdictSettings(), campaigns.family).word >= REGRESSION
    rejected = np.nan_to_num(tested.p_holm, nan=1.0) <= 0.05
    interval = (tested.obstacle == 0) & np.isfinite(tested.estimates.half_width)
    inside = interval & (
        np.abs(tested.estimates.difference.effect) <= np.where(interval, tested.estimates.half_width, 0)
    )
    any_cell = [int(cells.reshape(size).any(axis=1).sum()) for cells in (rejected, at_margin)]
    return any_cell[0], any_cell[1], int(inside.sum()), int(interval.sum())
