"""Adaptive campaigns: looked at after 5, 6, 8, ... blocks, decided cells frozen and not run again."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy

from benchmarks.calibration.campaigns import Bools, Campaigns, generate
from benchmarks.calibration.noise import Floats, Ints, Noise, Shape
from gpubench.stats.decision import INCONCLUSIVE, decide, schedule
from gpubench.stats.settings import Looks, Margin, VerdictSettings


@dataclasses.dataclass(frozen=True)
class Ended:
    """Adaptive campaigns at their end; arrays of shape (campaigns, cells).

    Args:
        word: index into the gate's WORDS.
        blocks: complete pairs that each cell has used.
        rejected: the test has rejected (whatever the verdict).
        covered: the repeated confidence interval holds the truth.
    """

    word: Ints
    blocks: Ints
    rejected: Bools
    covered: Bools

    @property
    def alarm_rate(self) -> float:
        """Share of campaigns with any rejection."""
        return float(self.rejected.any(axis=1).mean())

    @property
    def alarm_upper(self) -> float:
        """Clopper-Pearson one-sided 95 % upper bound of the rate."""
        alarmed = int(self.rejected.any(axis=1).sum())
        test = scipy.stats.binomtest(alarmed, len(self.rejected), alternative="less")
        return float(test.proportion_ci(0.95).high)


def run_adaptive(
    seed: int,
    noise: Noise,
    shape: Shape,
    effect: Floats | float = 0.0,
    *,
    margin: float = 0.03,
    maximum: int = 12,
    budget: int | None = None,
) -> Ended:
    """Campaigns of at most ``maximum`` blocks; with a budget they end after that many, whatever the data.

    Args:
        seed: makes the same campaigns again.
        noise: the model.
        shape: how many; at least ``maximum`` blocks.
        effect: log effect of the candidate, per cell or of all.
        margin: δ as a ratio minus one.
        maximum: declared maximum of blocks.
        budget: blocks after which the campaign must end.
    """
    each = np.broadcast_to(np.asarray(effect, dtype=float), (shape.cells,))
    portions = [_run(campaigns, each, margin, maximum, budget) for campaigns in generate(seed, noise, shape, each)]
    names = [field.name for field in dataclasses.fields(Ended)]
    return Ended(**{name: np.concatenate([getattr(portion, name) for portion in portions]) for name in names})


def _run(campaigns: Campaigns, effect: Floats, margin: float, maximum: int, budget: int | None) -> Ended:
    pairs, size = campaigns.pairs(), campaigns.times.shape[:2]
    circumstances = campaigns.circumstances(pairs)
    # By block number: a cell with a lost run has fewer pairs than blocks when it is looked at.
    there = _pairs_by_block(campaigns)
    seen, frozen = np.zeros_like(pairs.blocks), np.zeros(len(pairs.blocks), dtype=bool)
    looks = [look for look in schedule(maximum) if budget is None or look < budget] + ([budget] if budget else [])
    for look in looks:
        settings = VerdictSettings(margin=Margin(margin), look=Looks(maximum, ended=look == looks[-1]))
        seen = np.where(frozen, seen, there[:, look - 1])
        now = dataclasses.replace(circumstances, frozen=frozen)
        decisions = decide(pairs.head(seen), now, settings, campaigns.family)
        frozen |= decisions.word != INCONCLUSIVE
    half_width = decisions.estimates.half_width
    truth = np.tile(effect, size[0])
    rejected = np.nan_to_num(decisions.p_holm, nan=1.0) <= settings.alpha
    covered = ~(np.abs(decisions.estimates.difference.effect - truth) > half_width)
    return Ended(
        word=decisions.word.reshape(size),
        blocks=decisions.estimates.difference.blocks.reshape(size),
        rejected=rejected.reshape(size),
        covered=covered.reshape(size),
    )


def _pairs_by_block(campaigns: Campaigns) -> Ints:
    both = (campaigns.status == 0).all(axis=-1)
    return np.cumsum(both.reshape(-1, both.shape[-1]), axis=1)
