"""Speed-up and efficiency of one workload over the sizes of its cluster, with intervals."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from gpubench.stats import special
from gpubench.stats.ratio import Interval
from gpubench.stats.unpaired import welch

Rule = Literal["weak", "strong", "none"]
"""How the work grows: with the cluster, not at all, or in a way that says nothing of scaling."""
_ALPHA = 0.05
"""One minus the level of each interval, not adjusted for their number."""


@dataclasses.dataclass(frozen=True, slots=True)
class ScalingPoint:
    """What one workload took under one variant at one place.

    Args:
        logs: log of each run's seconds, as the verdicts take it: the run is the unit.
    """

    nodes: int
    workers_per_node: int
    threads_per_worker: int
    logs: tuple[float, ...]

    @property
    def units(self) -> int:
        """Worker threads of the whole cluster; on GPUs there is one to a GPU."""
        return self.nodes * self.workers_per_node * self.threads_per_worker


@dataclasses.dataclass(frozen=True, slots=True)
class TimeAtSize:
    """What one size of the cluster took, alone and against the smallest.

    ``speedup`` is of the rate at which work is done (weak: the work grew with the units), ``efficiency`` that over the
    ratio of units; both are None where the work follows no rule. The smallest size's own are 1 by definition, and have
    no interval.
    """

    at: ScalingPoint
    seconds: Interval
    speedup: Interval | None = None
    efficiency: Interval | None = None


def times_at_sizes(measured: Sequence[ScalingPoint], rule: Rule) -> list[TimeAtSize]:
    """Every size with runs, ascending, against the smallest one.

    The intervals are Welch's on the logs of the runs (Welch 1947): sizes are measured in different allocations, so runs
    aren't paired between them. All share the smallest size, whose error moves them together. What an allocation itself
    adds is in them only where a size was measured in several. ``measured`` has one entry per size; sizes without runs
    are left out.
    """
    sizes = sorted((point for point in measured if point.logs), key=lambda point: point.units)
    if rule == "none":
        return [TimeAtSize(point, _seconds(point)) for point in sizes]
    results = []
    for point in sizes:
        base, ratio, speedup = sizes[0], point.units / sizes[0].units, Interval(1.0)
        if point is not base:
            mean, difference = float(np.mean(base.logs) - np.mean(point.logs)), welch(base.logs, point.logs)
            half = None if difference is None else difference.half(_ALPHA)
            speedup = _exponential(mean, half).times(ratio if rule == "weak" else 1.0)
        results.append(TimeAtSize(point, _seconds(point), speedup, speedup.times(1 / ratio)))
    return results


def _seconds(point: ScalingPoint) -> Interval:
    return _exponential(float(np.mean(point.logs)), _own(point.logs))


def _exponential(mean: float, half: float | None) -> Interval:
    bounds = (None, None) if half is None else (math.exp(mean - half), math.exp(mean + half))
    return Interval(math.exp(mean), *bounds)


def _own(logs: Sequence[float]) -> float | None:
    """Half the width of the interval of the mean."""
    if len(logs) < 2:
        return None
    return float(-special.stdtrit(len(logs) - 1, _ALPHA / 2) * np.std(logs, ddof=1) / math.sqrt(len(logs)))
