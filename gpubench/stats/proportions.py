"""How often something happened: counts of verdicts over campaigns, and the exact interval of a rate."""

import dataclasses
from collections.abc import Sequence

from gpubench.stats import special

ALARMS = ("regression", "improvement", "broken")
"""Verdicts that claim a difference: between a version and itself each is a false alarm."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rate:
    """``count`` of ``total``, with the bounds of its interval."""

    count: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share; 0 of nothing."""
        return self.count / self.total if self.total else 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Tally:
    """Campaigns with an alarm, those in which every verdict is ``equivalent``, and those with a regression."""

    alarms: Rate
    equivalent: Rate
    regressions: Rate


def rate(count: int, total: int, alpha: float = 0.05) -> Rate:
    """The interval of Clopper and Pearson (1934, Biometrika 26:404): it covers the true rate in 1 − alpha or more."""
    low = float(special.betaincinv(count, total - count + 1, alpha / 2)) if count else 0.0
    high = float(special.betaincinv(count + 1, total - count, 1 - alpha / 2)) if count < total else 1.0
    return Rate(count, total, low, high)


def tally(campaigns: Sequence[Sequence[str]]) -> Tally:
    """Count campaigns, not comparisons: what is promised of a campaign holds for its whole family.

    Args:
        campaigns: the verdicts of each, at least one.
    """
    total = len(campaigns)
    return Tally(
        rate(sum(any(word in ALARMS for word in words) for words in campaigns), total),
        rate(sum(all(word == "equivalent" for word in words) for words in campaigns), total),
        rate(sum("regression" in words for words in campaigns), total),
    )
