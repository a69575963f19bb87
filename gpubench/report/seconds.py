"""Both sides of a comparison in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from gpubench.stats.data import ComparisonInput
from gpubench.stats.settings import Summary
from gpubench.stats.verdict import Verdict

Seconds = tuple[float, float] | None
"""Baseline and candidate; None where no block has both."""

_NUMBER: Mapping[Summary, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "geomean": statistics.geometric_mean,
    "median": statistics.median,
}


def seconds(comparisons: Sequence[ComparisonInput], verdicts: Sequence[Verdict], summary: Summary) -> list[Seconds]:
    """Of every verdict: baseline and candidate, in seconds.

    Each is the geometric mean over the blocks that the verdict used of its runs' numbers under the chosen summary, so
    that the second is the first times one plus the effect.
    """
    cells: dict[frozenset[tuple[str, object]], dict[str, dict[int, Sequence[float]]]] = {}
    for one in comparisons:
        sides = cells.setdefault(frozenset(one.key.items()), {})
        for run in one.runs:
            if run.wall_s:
                sides.setdefault(run.variant, {})[run.block] = run.wall_s
    return [_pair(one, cells.get(frozenset(one.key.items()), {}), summary) for one in verdicts]


def _pair(one: Verdict, sides: Mapping[str, Mapping[int, Sequence[float]]], summary: Summary) -> Seconds:
    before, after = sides.get(one.baseline, {}), sides.get(one.candidate, {})
    # The blocks that count are the first ones: a look that decided the comparison leaves out what came later.
    blocks = sorted(before.keys() & after.keys())[: one.blocks]
    if not blocks:
        return None
    return _mean([before[block] for block in blocks], summary), _mean([after[block] for block in blocks], summary)


def _mean(runs: Sequence[Sequence[float]], summary: Summary) -> float:
    return statistics.geometric_mean([_NUMBER[summary](samples) for samples in runs])
