"""Differences of logs as ratios minus one, in words and as plain values."""

import math
from collections.abc import Mapping

from gpubench.report import labels
from gpubench.stats.bisection import Estimate


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
