"""Speed-up and efficiency of one workload over the sizes of its cluster, with intervals.

The universal scalability law: what keeps a cluster from doing twice the work on twice the units.

Rate(N) = λ·N / (1 + σ(N - 1) + κN(N - 1)): σ is the share that is done one after the other (contention), κ what every
pair of units costs (coherency). Amdahl's law is κ = 0. Source: N. J. Gunther, Guerrilla Capacity Planning, 2007.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from gpubench.stats import special
from gpubench.stats.runs import Floats
from gpubench.stats.unpaired import welch

Growth = Literal["weak", "strong"]
"""How the work grows: with the cluster, or not at all."""
Rule = Growth | Literal["none"]
"""``none``: in a way that says nothing of scaling."""
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
class Interval:
    """A value with its interval; bounds are None where the runs don't give one."""

    value: float
    low: float | None = None
    high: float | None = None

    def times(self, factor: float) -> "Interval":
        """Multiplied by an exact number."""
        bounds = (None if bound is None else bound * factor for bound in (self.low, self.high))
        return Interval(self.value * factor, *bounds)


@dataclasses.dataclass(frozen=True, slots=True)
class TimeAtSize:
    """What one size of the cluster took."""

    at: ScalingPoint
    seconds: Interval


@dataclasses.dataclass(frozen=True, slots=True)
class SpeedupAtSize(TimeAtSize):
    """One size of the cluster against the smallest.

    ``speedup`` is of the rate at which work is done (weak: the work grew with the units), ``efficiency`` that over the
    ratio of units. The smallest size's own are 1 by definition, and have no interval.
    """

    speedup: Interval
    efficiency: Interval


def times_at_sizes(measured: Sequence[ScalingPoint]) -> list[TimeAtSize]:
    """Every size with runs, ascending."""
    return [TimeAtSize(one, _seconds(one)) for one in _with_runs(measured)]


def speedups(measured: Sequence[ScalingPoint], rule: Growth) -> list[SpeedupAtSize]:
    """Every size against the smallest one with runs, ascending.

    The intervals are Welch's on the logs of the runs (Welch 1947): sizes are measured in different allocations, so runs
    aren't paired between them. All share the smallest size, whose error moves them together. What an allocation itself
    adds is in them only where a size was measured in several. ``measured`` has one entry per size; sizes without runs
    are left out.
    """
    sizes = _with_runs(measured)
    found = []
    for one in sizes:
        base, ratio, speedup = sizes[0], one.units / sizes[0].units, Interval(1.0)
        if one is not base:
            mean, difference = float(np.mean(base.logs) - np.mean(one.logs)), welch(base.logs, one.logs)
            half = None if difference is None else difference.half(_ALPHA)
            speedup = _exponential(mean, half).times(ratio if rule == "weak" else 1.0)
        found.append(SpeedupAtSize(one, _seconds(one), speedup, speedup.times(1 / ratio)))
    return found


def _with_runs(measured: Sequence[ScalingPoint]) -> list[ScalingPoint]:
    return sorted((one for one in measured if one.logs), key=lambda one: one.units)


def _seconds(one: ScalingPoint) -> Interval:
    return _exponential(float(np.mean(one.logs)), _own(one.logs))


def _exponential(mean: float, half: float | None) -> Interval:
    bounds = (None, None) if half is None else (math.exp(mean - half), math.exp(mean + half))
    return Interval(math.exp(mean), *bounds)


def _own(logs: Sequence[float]) -> float | None:
    """Half the width of the interval of the mean."""
    if len(logs) < 2:
        return None
    return float(-special.stdtrit(len(logs) - 1, _ALPHA / 2) * np.std(logs, ddof=1) / math.sqrt(len(logs)))


LEAST_SIZES = 3
REACH = 2.0
"""Nothing is said about clusters more than this times as large as the largest measured one."""
_SMALLEST, _LARGEST = 1e-9, 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Usl:
    """A fitted law.

    Args:
        rate: λ, work per second of one unit.
        contention: σ.
        coherency: κ.
        largest: units of the largest cluster measured.
    """

    rate: Interval
    contention: Interval
    coherency: Interval
    largest: int

    def speedup(self, units: float) -> float:
        """Rate of ``units`` over that of one; raises ValueError beyond REACH."""
        if units > REACH * self.largest:
            raise ValueError(f"{units:g} units are more than {REACH:g} times the {self.largest} that were measured")
        return float(capacity(np.asarray(units, dtype=float), self.contention.value, self.coherency.value))

    @property
    def peak(self) -> float | None:
        """Units beyond which more of them do less, 1 where the second does harm; None where that lies beyond REACH.

        Above 1, σ is no share any more: one unit alone spares what several have to pay (they talk, it doesn't).
        """
        if self.contention.value >= 1:
            return 1.0
        if self.coherency.value <= 0:
            return None
        found = max(1.0, math.sqrt((1 - self.contention.value) / self.coherency.value))
        return found if found <= REACH * self.largest else None


def capacity(units: Floats, contention: Floats | float, coherency: Floats | float) -> Floats:
    """C(N), the rate in units of one unit's; arrays are broadcast."""
    return np.asarray(units / (1 + contention * (units - 1) + coherency * units * (units - 1)))


def fit_usl(measured: Sequence[ScalingPoint], rule: Rule) -> Usl | None:
    """Least squares on the logs of the runs' rates (noise is a factor), with profile-likelihood intervals.

    A bound is where the residual sum of squares, least over the other parameters, has grown by F(1, n - 3)/(n - 3)
    (Bates & Watts, Nonlinear Regression Analysis, 1988, ch. 6), and never negative. None below LEAST_SIZES sizes, or
    with no run to spare.
    """
    sizes = [one for one in measured if one.logs]
    units = np.repeat([float(one.units) for one in sizes], [len(one.logs) for one in sizes])
    seconds = np.concatenate([one.logs for one in sizes]) if sizes else np.empty(0)
    if len({one.units for one in sizes}) < LEAST_SIZES or len(units) < 5:
        return None
    fit = _Fit(units, (np.log(units) if rule == "weak" else 0.0) - seconds)
    limit = fit.best * (1 + float(special.fdtri(1, len(units) - 3, 1 - _ALPHA)) / (len(units) - 3))
    contention = _profile(fit.at_contention, fit.contention, limit)
    coherency = _profile(fit.at_coherency, fit.coherency, limit)
    return Usl(fit.rate(contention, limit), contention, coherency, int(units.max()))


class _Fit:
    """Residual sums of squares; λ comes out of σ and κ in closed form."""

    def __init__(self, units: Floats, log_rates: Floats) -> None:
        self.units = units
        self.log_rates = log_rates
        self.contention = _least(self.at_contention)
        self.coherency = self.coherency_at(self.contention)
        self.best = float(self.residual(self.contention, self.coherency))

    def residual(self, contention: Floats | float, coherency: Floats | float) -> Floats:
        """Of every pair; one of the two may be an array of shape (n,)."""
        return np.asarray(np.var(self._apart(contention, coherency), axis=-1) * len(self.units))

    def _apart(self, contention: Floats | float, coherency: Floats | float) -> Floats:
        one, other = (np.asarray(each, dtype=float)[..., None] for each in (contention, coherency))
        return np.asarray(self.log_rates - np.log(capacity(self.units, one, other)))

    def coherency_at(self, contention: float) -> float:
        """The best κ for this σ."""
        return _least(lambda coherency: self.residual(contention, coherency))

    def at_contention(self, contention: Floats) -> Floats:
        """The least residual for each σ."""
        each = [self.residual(one, self.coherency_at(one)) for one in np.atleast_1d(contention)]
        return np.asarray(each).reshape(np.shape(contention))

    def at_coherency(self, coherency: Floats) -> Floats:
        """The least residual for each κ."""
        each = [
            self.residual(_least(lambda contention, fixed=one: self.residual(contention, fixed)), one)  # type: ignore[misc]
            for one in np.atleast_1d(coherency)
        ]
        return np.asarray(each).reshape(np.shape(coherency))

    def rate(self, contention: Interval, limit: float) -> Interval:
        """λ, from what the ends of σ's interval leave of it, and its own scatter beside them."""
        logs = [
            float(np.mean(self._apart(one, self.coherency_at(one))))
            for one in (contention.value, contention.low, contention.high)
            if one is not None
        ]
        scatter = math.sqrt(max(0.0, limit - self.best) / len(self.units))
        return Interval(math.exp(logs[0]), math.exp(min(logs) - scatter), math.exp(max(logs) + scatter))


_GRID = np.array([0.0, *np.geomspace(_SMALLEST, _LARGEST, 41)])


def _least(cost: Callable[[Floats], Floats]) -> float:
    """Where ``cost`` is least on 0 … _LARGEST: the best of a grid, refined between its neighbours."""
    costs = cost(_GRID)
    at = int(np.argmin(costs))
    bounds = (_GRID[max(0, at - 1)], _GRID[min(len(_GRID) - 1, at + 1)])
    from scipy import optimize  # noqa: PLC0415 - a quarter of a second of start, which only curves of scaling need

    found = optimize.minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-6 * bounds[1]})
    return float(found.x if found.fun < costs[at] else _GRID[at])


def _profile(cost: Callable[[Floats], Floats], best: float, limit: float) -> Interval:
    """Where ``cost`` crosses ``limit`` on both sides of ``best``; a bound is None where it doesn't up to _LARGEST."""

    def beyond(value: float) -> float:
        return float(cost(np.asarray(value))) - limit

    if beyond(best) >= 0:  # no scatter at all but that of rounding: nothing else fits as well
        return Interval(best, best, best)
    from scipy import optimize  # noqa: PLC0415 - as above

    low = 0.0 if best == 0 or beyond(0.0) <= 0 else float(optimize.brentq(beyond, 0.0, best, rtol=1e-4))
    step = max(best, _SMALLEST)
    while beyond(best + step) <= 0:
        step *= 2
        if best + step > _LARGEST:
            return Interval(best, low, None)
    return Interval(best, low, float(optimize.brentq(beyond, best, best + step, rtol=1e-4)))
