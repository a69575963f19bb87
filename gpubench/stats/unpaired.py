"""Two sides that share no block: verdicts on the ratio of what their cells hold, by Welch's t. Pure.

Blocks pair what ran side by side, and so take out days, nodes and queues. Where the two sides are two campaigns, none
is shared: these stay in the difference, whatever the p-value says.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpubench.model.text import counted
from gpubench.stats import special
from gpubench.stats.data import BlockId, CellRun, ComparisonInput
from gpubench.stats.decision import NO_VARIATION, holm, holm_levels
from gpubench.stats.flags import NO_TRAFFIC, no_traffic
from gpubench.stats.runs import number_runs
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import NOT_GOOD, Verdict, failures, reason_of_times

UNPAIRED = "unpaired"
"""The flag of such a verdict."""

FEWEST = 3
"""Blocks on a side: two give a variance of one degree of freedom, which no verdict can stand on."""

FEW = 5
"""Below this many on a side the degrees of freedom are the smaller side's, a bound that holds whatever the variances
are (Mickey and Brown 1966, Ann. Math. Stat. 37:639). Satterthwaite's would call 11 % of families of four different
where nothing is, at 3 blocks against 6 with four times the noise; from 5 on it is at most 7 % over the same ratios, and
5 % where both sides are as noisy and as long."""


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


def judge_unpaired(comparisons: Sequence[ComparisonInput], settings: VerdictSettings) -> list[Verdict]:
    """Verdicts of a family, in its order; ``blocks`` of a verdict are those of the side that has fewer.

    The words are those of paired verdicts, in the same order of precedence: equivalent where the 90 % interval lies
    within the margin, regression or improvement where p after Holm says so, else inconclusive. As there, a candidate
    that failed in two blocks is broken if the baseline ran, and one that failed in one is neither equivalent nor
    improved.

    Args:
        comparisons: *every* one: one without blocks, or refused, keeps its place in Holm's correction.
    """
    sides = [((), ()) if comparison.refused else _sides(comparison) for comparison in comparisons]
    differences = [_tested(*both) for both in sides]
    p = np.array([math.nan if difference is None else difference.p for difference in differences])
    adjusted = holm(p, np.zeros(len(p), dtype=np.int64))
    levels = holm_levels(p, adjusted <= settings.alpha, settings.alpha)
    held = zip(adjusted.tolist(), levels.tolist(), strict=True)
    rows = zip(comparisons, sides, differences, held, strict=True)
    return [_judged(*row, members=len(comparisons), settings=settings) for row in rows]


def block_logs(runs: Iterable[CellRun]) -> list[float]:
    """Log of the seconds of every block: the mean over its runs."""
    blocks: dict[BlockId, list[float]] = {}
    for run in runs:
        if run.times and (block := run.block_id) is not None:
            blocks.setdefault(block, []).append(float(number_runs(np.array(run.times)).log_mean))
    return [float(np.mean(logs)) for logs in blocks.values()]


def _sides(comparison: ComparisonInput) -> tuple[Sequence[float], Sequence[float]]:
    baseline, candidate = (
        block_logs(run for run in comparison.runs if run.variant == variant)
        for variant in (comparison.baseline, comparison.candidate)
    )
    return baseline, candidate


def _tested(first: Sequence[float], second: Sequence[float]) -> UnpairedDifference | None:
    fewer = min(len(first), len(second))
    difference = welch(first, second) if fewer >= FEWEST else None
    return dataclasses.replace(difference, freedom=fewer - 1) if difference and fewer < FEW else difference


def _judged(
    comparison: ComparisonInput,
    sides: tuple[Sequence[float], Sequence[float]],
    difference: UnpairedDifference | None,
    held: tuple[float, float],
    *,
    members: int,
    settings: VerdictSettings,
) -> Verdict:
    blocks = len(sides[0]), len(sides[1])
    common: dict[str, Any] = {
        "key": comparison.key,
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        "blocks": min(blocks),
        "samples": sum(len(run.times) for run in comparison.runs),
        "flags": (
            UNPAIRED,
            *([NO_TRAFFIC] if no_traffic(comparison) else []),
            *(["unchecked"] if comparison.unchecked else []),
            *comparison.notes,
        ),
        "moved": comparison.moved,
    }
    failed = 0 if comparison.refused or not blocks[0] else _failed(comparison, comparison.candidate)
    broken = f"the candidate failed in {counted(failed, 'block')}, and the baseline ran in {blocks[0]}"
    if difference is None or math.isnan(held[0]):
        effect = math.expm1(float(np.mean(sides[1]) - np.mean(sides[0]))) if min(blocks) else None
        word, reason = "inconclusive", comparison.refused or _obstacle(comparison, blocks)
        if failed >= 2:
            word, reason = "broken", broken
        return Verdict(**common, effect=effect, low=None, high=None, verdict=word, reason=reason)
    p_holm, level = held
    wide = difference.half(2 * settings.alpha)
    low, high = difference.mean - difference.half(settings.alpha), difference.mean + difference.half(settings.alpha)
    low_adjusted, high_adjusted = (math.expm1(difference.mean + way * difference.half(level)) for way in (-1, 1))
    word = "inconclusive"
    if settings.margin.contains(difference.mean - wide, difference.mean + wide):
        word = "equivalent"
    elif p_holm <= settings.alpha:
        word = "regression" if difference.mean > 0 else "improvement"
    reason = reason_of_times(word, _counts(blocks), (p_holm, members), (low, high), settings)
    if failed >= 2:
        word, reason = "broken", broken
    elif failed and word != "regression":
        word, reason = "inconclusive", f"failed: the candidate failed in one block; {NOT_GOOD}"
    return Verdict(
        **common,
        effect=math.expm1(difference.mean),
        low=math.expm1(low),
        high=math.expm1(high),
        verdict=word,
        reason=reason,
        p=difference.p,
        p_holm=p_holm,
        beyond_margin=settings.margin.is_exceeded(word, low_adjusted, high_adjusted),
        low_adjusted=low_adjusted,
        high_adjusted=high_adjusted,
        low_equivalence=math.expm1(difference.mean - wide),
        high_equivalence=math.expm1(difference.mean + wide),
    )


def _counts(blocks: tuple[int, int]) -> str:
    return f"{blocks[0]} and {blocks[1]} blocks"


def _failed(comparison: ComparisonInput, variant: str) -> int:
    """Blocks in which that variant failed."""
    return len({run.block_id for run in comparison.runs if (run.variant, run.status) == (variant, "failed")})


def _obstacle(comparison: ComparisonInput, blocks: tuple[int, int]) -> str:
    counts = _counts(blocks)
    if not min(blocks):
        undated = any(run.times and run.block is None for run in comparison.runs)
        why = "; in an import, dates are used as blocks" if undated else ""
        failed = (_failed(comparison, variant) for variant in (comparison.baseline, comparison.candidate))
        return f"no data: {counts}{why}{failures(*failed)}"
    if min(blocks) < FEWEST:
        return f"few blocks: {counts}; a verdict needs at least {FEWEST} on each side"
    return f"no variation: {counts} without any; repeated rows are not repeated runs"
