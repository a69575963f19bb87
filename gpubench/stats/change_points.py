"""Where a series of figures changed for good: e-divisive, with p-values by permutation.

Source: Matteson & James (2014), A nonparametric approach for multiple change point analysis of multivariate data, JASA
109:334 (the energy statistic, its search over both ends, the permutation test); used on nightly benchmarks by Daly et
al. (2020), The use of change point detection to identify software performance regressions in a continuous integration
system, ICPE. The p-values are sequential (Besag & Clifford 1991, Biometrika 78:301): a series in which nothing stands
out is not permuted to the end.

A series of more than LONGEST points is searched as means of equal stretches: where nothing changed they are
exchangeable like the points, so their permutations give as true a p. The place is then looked for nearby.

The promise about false alarms holds on a condition: where nothing changed, the values are exchangeable (each could have
come on any other day). It doesn't hold where a day resembles the day before, or where values drift: such series have
changes of their own, and these are found.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpubench.stats.decision import NO_VARIATION, holm
from gpubench.stats.runs import Floats, Ints

LEAST = 3
"""Points on each side of a change; a bump of fewer is an outlier."""

FEWEST = 8
"""Points of a series that is searched: below, no arrangement is rare enough to be called a change."""

LONGEST = 400
"""Points that are searched one by one, a year of nights: work grows with their square."""
_STRETCHES = 125
"""Of a longer series, at most; a bump in it must last LEAST of them."""

_ENOUGH = 30
"""Permutations that reach what was observed, after which a search ends: nothing stands out."""
_LEAST_DRAWS, _FINER = 1000, 5
"""Permutations of a search: at least, and as many as make its smallest p this part of what Holm asks."""
_MANY_DRAWS, _FINEST, _WORK = 9_999, 20, 36 * 10**6
"""The same while all permutations of a search have at most so many distances together: a short series can have more."""
_FIRST, _AT_ONCE = 250, 2000
"""Permutations after which a search may end: the first time, and from then on."""
_ROUNDING = 4e-6
"""What float32 may change of an energy, as a part of all distances from the median: orders that are as good as the
observed one must count as reaching it."""


@dataclass(frozen=True)
class ChangePoint:
    """A change: ``at`` is the first point that is different.

    ``effect`` is what the mean changed by as a ratio minus one, between the stretches on both sides up to the next
    changes. ``p`` is after Holm over all series for the change that a series was singled out by, else of that search.
    """

    at: int
    effect: float
    p: float


def change_points(
    series: Sequence[Sequence[float]],
    seed: int,
    alpha: float = 0.05,
    searching: Callable[[int, int], None] | None = None,
) -> list[list[ChangePoint]]:
    """The changes of every series, in order.

    Where nothing changes in any series, one or more is called changed with a probability of at most ``alpha``, if the
    values of each are exchangeable: the first search of each is corrected by Holm over all that are long enough.
    Further changes are looked for only in series that have one, each at ``alpha``.

    Args:
        series: logs, in order of time; one shorter than FEWEST isn't searched.
        searching: is told how many series have been searched, of how many.
    """
    values = [np.asarray(logs, dtype=float) for logs in series]
    rows = [row for row, logs in enumerate(values) if len(logs) >= FEWEST]
    firsts: list[tuple[int, float]] = []
    for row in rows:
        if searching:
            searching(len(firsts), len(rows))
        firsts.append(_search(values[row], seed, alpha / len(rows)))
    adjusted = holm(np.array([p for _, p in firsts], dtype=float), np.zeros(len(rows), dtype=np.int64))
    changes: list[list[ChangePoint]] = [[] for _ in series]
    for row, (split, _), p in zip(rows, firsts, adjusted.tolist(), strict=True):
        if p <= alpha:
            logs = values[row]
            further = (*_within(logs, 0, split, seed, alpha), *_within(logs, split, len(logs), seed, alpha))
            changes[row] = _with_effects(logs, sorted([(split, p), *further]))
    return changes


def _within(values: Floats, start: int, end: int, seed: int, alpha: float) -> list[tuple[int, float]]:
    """Further changes between two places of a series, by halves."""
    if end - start < FEWEST:
        return []
    split, p = _search(values[start:end], seed, alpha)
    if p > alpha:
        return []
    at = start + split
    return [(at, p), *_within(values, start, at, seed, alpha), *_within(values, at, end, seed, alpha)]


def _with_effects(values: Floats, changes: Sequence[tuple[int, float]]) -> list[ChangePoint]:
    edges = [0, *(at for at, _ in changes), len(values)]
    means = [float(np.mean(values[start:end])) for start, end in itertools.pairwise(edges)]
    return [
        ChangePoint(at, float(np.expm1(after - before)), p)
        for (at, p), (before, after) in zip(changes, itertools.pairwise(means), strict=True)
    ]


def _search(values: Floats, seed: int, level: float) -> tuple[int, float]:
    """The place of the greatest energy statistic, and its p-value, as fine as a test at ``level`` needs it."""
    if np.ptp(values) <= NO_VARIATION:  # the mean of three equal times isn't always that of two
        return LEAST, 1.0
    size = 1 if len(values) <= LONGEST else -(-len(values) // _STRETCHES)
    left_out = len(values) % size  # the oldest: a stretch of other size wouldn't be exchangeable
    stretches = values[left_out:].reshape(-1, size).mean(axis=1)
    (observed,), split, end = _greatest(stretches[:, None])
    centred = (stretches - np.median(stretches)).astype(np.float32)  # half of the work of float64
    least = observed - _ROUNDING * float(np.sum(np.abs(centred)))
    many = min(_WORK // len(centred) ** 2, max(_MANY_DRAWS, math.ceil(_FINEST / level) - 1))
    draws = max(_LEAST_DRAWS, math.ceil(_FINER / level) - 1, many)
    reached = drawn = 0
    while drawn < draws and reached < _ENOUGH:
        count = min(_AT_ONCE if drawn else _FIRST, draws - drawn)
        orders = centred.take(_orders(len(centred), count, (seed, drawn)))
        reached += int(np.sum(_greatest(orders)[0] >= least))
        drawn += count
    p = (reached + 1) / (drawn + 1)  # valid though the end is at a look, later than Besag & Clifford's
    return _nearby(values[: left_out + end * size], left_out + split * size, size - 1), p


@functools.lru_cache(maxsize=8)
def _orders(points: int, count: int, seed: tuple[int, ...]) -> Ints:
    """Random orders, shape (points, count): the same for all series of a length, which takes a fifth off their time."""
    start = np.tile(np.arange(points), (count, 1))
    return np.ascontiguousarray(np.random.default_rng((points, *seed)).permuted(start, axis=1).T)


def _greatest(orders: Floats) -> tuple[Floats, int, int]:
    """Each order's greatest energy statistic (Matteson & James' Q) of all splits and ends; where it is in the first.

    With s(a, b) = 2 * (sum of the distances between the points from a to b) / (b - a - 1), Q of a split and an end is
    (s(0, end) - s(0, split) - s(split, end)) * (end - 1) / end. A further point adds its distances to all sums.

    Args:
        orders: shape (points, orders): neighbours in memory are of other orders, and are worked on together.
    """
    points, count = orders.shape
    sums, lefts = np.zeros_like(orders), np.zeros_like(orders)  # of distances from a point to the end; s(0, split)
    distances, costs = np.empty_like(orders), np.empty_like(orders)
    rows = list(distances)
    greatest, place = np.full(count, -np.inf, orders.dtype), (0, 0)
    for last in range(1, points):
        end = last + 1
        np.abs(np.subtract(orders[:last], orders[last], out=distances[:last]), out=distances[:last])
        for row in range(last - 1, 0, -1):  # several times as fast as cumsum along the first axis
            np.add(rows[row - 1], rows[row], out=rows[row - 1])
        sums[:last] += distances[:last]
        whole = sums[0] * (2 / last)
        if end < points:
            lefts[end] = whole
        if end >= 2 * LEAST:
            splits = slice(LEAST, end - LEAST + 1)
            factors = (2 / (last - np.arange(LEAST, end - LEAST + 1))).astype(orders.dtype)
            cost = np.multiply(sums[splits], factors[:, None], out=costs[splits])
            cost += lefts[splits]
            energies = (whole - cost.min(axis=0)) * (last / end)
            if energies[0] > greatest[0]:
                place = LEAST + int(cost[:, 0].argmin()), end
            np.maximum(greatest, energies, out=greatest)
    return greatest, *place


def _nearby(values: Floats, split: int, reach: int) -> int:
    """The split of the greatest energy statistic at most ``reach`` points from ``split``; all of ``values`` count."""

    def cost(values: Floats) -> float:  # s of ``_greatest``; the sum of all distances, from the sorted values
        return float(np.sum((2 * np.arange(len(values)) - len(values) + 1) * np.sort(values))) / (len(values) - 1)

    places = range(max(LEAST, split - reach), min(len(values) - LEAST, split + reach) + 1)
    return min(places, key=lambda at: cost(values[:at]) + cost(values[at:]))
