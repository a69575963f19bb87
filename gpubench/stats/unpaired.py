"""Two sides that share no block: verdicts on the ratio of what their cells hold, by Welch's t. Pure.

Blocks pair what ran side by side, and so take out days, nodes and queues. Where the two sides are two campaigns, none
is shared: these stay in the difference, whatever the p-value says.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from gpubench.stats import special
from gpubench.stats.decision import NO_VARIATION, holm, holm_levels
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import reason_of_times

FEWEST = 3
"""Blocks on a side: two give a variance of one degree of freedom, which no verdict can stand on."""

FEW = 5
"""Below this many on a side the degrees of freedom are the smaller side's, a bound that holds whatever the variances
are (Mickey and Brown 1966, Ann. Math. Stat. 37:639). Satterthwaite's would call 11 % of families of four different
where nothing is, at 3 blocks against 6 with four times the noise; from 5 on it is at most 7 % over the same ratios, and
5 % where both sides are as noisy and as long."""

Word = Literal["regression", "improvement", "equivalent", "inconclusive"]


@dataclasses.dataclass(frozen=True, slots=True)
class UnpairedDifference:
    """Of the means of two independent samples.

    Args:
        mean: second minus first.
        error: its standard error.
        freedom: degrees of freedom of that.
    """

    mean: float
    error: float
    freedom: float

    @property
    def p(self) -> float:
        """Two-sided."""
        return float(2 * special.stdtr(self.freedom, -abs(self.mean) / self.error))

    def half(self, alpha: float) -> float:
        """Half the width of the interval of level 1 - ``alpha``."""
        return float(-special.stdtrit(self.freedom, alpha / 2)) * self.error


@dataclasses.dataclass(frozen=True, slots=True)
class JudgedUnpaired:
    """What may be believed of B against A, in the fields of ``Verdict``; ``blocks`` are those of A and of B."""

    effect: float | None
    low: float | None
    high: float | None
    blocks: tuple[int, int]
    p: float | None
    p_holm: float | None
    verdict: Word
    reason: str
    beyond_margin: bool
    low_adjusted: float | None = None
    high_adjusted: float | None = None
    low_equivalence: float | None = None
    high_equivalence: float | None = None


def welch(first: Sequence[float], second: Sequence[float]) -> UnpairedDifference | None:
    """Difference of two means whose variances may differ (Welch 1947, Biometrika 34:28; Satterthwaite 1946).

    None where a side has fewer than two values, or neither varies but by what rounding leaves: the mean of three equal
    times isn't always that of two.
    """
    if min(len(first), len(second)) < 2 or np.ptp(first) + np.ptp(second) <= NO_VARIATION:
        return None
    shares = [float(np.var(side, ddof=1)) / len(side) for side in (first, second)]
    error = math.sqrt(sum(shares))
    freedom = error**4 / sum(share**2 / (len(side) - 1) for share, side in zip(shares, (first, second), strict=True))
    return UnpairedDifference(float(np.mean(second) - np.mean(first)), error, freedom)


def judge_unpaired(
    family: Sequence[tuple[Sequence[float], Sequence[float]]], settings: VerdictSettings
) -> list[JudgedUnpaired]:
    """Verdicts of a family, in its order.

    The words are those of paired verdicts, in the same order of precedence: equivalent where the 90 % interval lies
    within the margin, regression or improvement where p after Holm says so, else inconclusive.

    Args:
        family: log of the seconds of A's blocks and of B's, one value a block, of *every* comparison: one without
            values keeps its place in Holm's correction.
    """
    found = [_tested(*sides) for sides in family]
    p = np.array([math.nan if one is None else one.p for one in found])
    adjusted = holm(p, np.zeros(len(p), dtype=np.int64))
    levels = holm_levels(p, adjusted <= settings.alpha, settings.alpha)
    return [
        _judged(sides, one, (float(p_holm), float(level)), len(family), settings)
        for sides, one, p_holm, level in zip(family, found, adjusted, levels, strict=True)
    ]


def _tested(first: Sequence[float], second: Sequence[float]) -> UnpairedDifference | None:
    fewer = min(len(first), len(second))
    found = welch(first, second) if fewer >= FEWEST else None
    return dataclasses.replace(found, freedom=fewer - 1) if found and fewer < FEW else found


def _judged(
    sides: tuple[Sequence[float], Sequence[float]],
    found: UnpairedDifference | None,
    held: tuple[float, float],
    members: int,
    settings: VerdictSettings,
) -> JudgedUnpaired:
    p_holm, level = held
    blocks = len(sides[0]), len(sides[1])
    if found is None or math.isnan(p_holm):
        effect = math.expm1(float(np.mean(sides[1]) - np.mean(sides[0]))) if min(blocks) else None
        return JudgedUnpaired(effect, None, None, blocks, None, None, "inconclusive", _obstacle(blocks), False)
    margin, wide = settings.margin.log, found.half(2 * settings.alpha)
    low, high = found.mean - found.half(settings.alpha), found.mean + found.half(settings.alpha)
    adjusted = found.mean - found.half(level), found.mean + found.half(level)
    word: Word = "inconclusive"
    if -margin <= found.mean - wide and found.mean + wide <= margin:
        word = "equivalent"
    elif p_holm <= settings.alpha:
        word = "regression" if found.mean > 0 else "improvement"
    low_adjusted, high_adjusted = (math.expm1(bound) for bound in adjusted)
    return JudgedUnpaired(
        math.expm1(found.mean),
        math.expm1(low),
        math.expm1(high),
        blocks,
        found.p,
        p_holm,
        word,
        reason_of_times(word, _counts(blocks), (p_holm, members), (low, high), settings),
        settings.margin.is_exceeded(word, low_adjusted, high_adjusted),
        low_adjusted,
        high_adjusted,
        math.expm1(found.mean - wide),
        math.expm1(found.mean + wide),
    )


def _counts(blocks: tuple[int, int]) -> str:
    return f"{blocks[0]} and {blocks[1]} blocks"


def _obstacle(blocks: tuple[int, int]) -> str:
    counts = _counts(blocks)
    if not min(blocks):
        return f"no data: {counts}"
    if min(blocks) < FEWEST:
        return f"few blocks: {counts}; a verdict needs at least {FEWEST} on each side"
    return f"no variation: {counts} without any; repeated rows are not repeated runs"
