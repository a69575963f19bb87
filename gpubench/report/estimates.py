"""Differences of logs as ratios minus one, in words and as plain values; and why there is none."""

import math
from collections.abc import Mapping, Sequence

from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.stats.bisection import Estimate, Step, failing_points


def ratio(log: float) -> float:
    """A difference of logs as a ratio minus one."""
    return math.expm1(log)


def bounds(estimate: Estimate) -> tuple[float | None, float | None]:
    """As ratios minus one; None without an interval."""
    finite = math.isfinite(estimate.low) and math.isfinite(estimate.high)
    return (ratio(estimate.low), ratio(estimate.high)) if finite else (None, None)


def with_interval(estimate: Estimate) -> str:
    """``+48.1 % [+39, +58]``."""
    return f"{labels.percent(ratio(estimate.mean))} {labels.between(*bounds(estimate))}"


def figures(estimate: Estimate | None) -> Mapping[str, float | int | None] | None:
    """As JSON."""
    if estimate is None:
        return None
    low, high = bounds(estimate)
    return {"ratio": ratio(estimate.mean), "low": low, "high": high, "blocks": estimate.blocks}


def no_figure(steps: Sequence[Step], ends: Mapping[int, str]) -> str:
    """Which ends, by point what they are called, have no figure in the last step."""
    step = steps[-1]
    failing = labels.listed(ends[point] for point in failing_points(step) if point in ends)
    which = f"step {len(steps) - 1}, {counted(len(step.blocks), 'block')}"
    return f"no run of {failing} gave a figure ({which}); gpubench report says why, for the campaign of that step."
