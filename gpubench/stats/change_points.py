"""Where a series of figures changed for good: e-divisive, with p-values by permutation.

Source: Matteson & James (2014), A nonparametric approach for multiple change point analysis of multivariate data, JASA
109:334 (the energy statistic, its search over both ends, the permutation test); used on nightly benchmarks by Daly et
al. (2020), The use of change point detection to identify software performance regressions in a continuous integration
system, ICPE. The p-values are sequential (Besag & Clifford 1991, Biometrika 78:301): a series in which nothing stands
out is not permuted to the end.

A series of more than LONGEST points is searched as means of equal stretches: where nothing changed they are
exchangeable like the points, so their permutations give as true a p. The place is then looked for nearby.

A permutation test takes the dates to be exchangeable where nothing changed. A slow drift isn't that, and is found as
steps.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from gpubench.stats.decision import NO_VARIATION, holm
from gpubench.stats.runs import Floats

LEAST = 3
"""Points on each side of a change; a bump of fewer is an outlier."""

FEWEST = 8
"""Points of a series that is searched: below, no arrangement is rare enough to be called a change."""

LONGEST = 400
"""Points that are searched one by one, a year of nights: work grows with their square, and so does memory."""
_STRETCHES = 125
"""Of a longer series, at most; a bump in it must last LEAST of them."""

_ENOUGH = 30
"""Permutations that reach what was observed, after which a search ends: nothing stands out."""
_MOST_DRAWS, _LEAST_DRAWS, _FINER, _FINER_LONG = 9_999, 999, 20, 5
"""Permutations of a search: at most and at least, and as many as make its smallest p this part of what Holm asks (the
last for series beyond LONGEST)."""
_WORK = 10**8
"""Distances in all permutations of a search together, from which on there are fewer than the most."""
_CELLS, _AT_ONCE = 2**22, 2**16
"""Distances of the permutations after which a search may end, and of those that are looked at together: these stay in
the processor's cache."""


@dataclasses.dataclass(frozen=True)
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

    Where nothing changes in any series, one or more is called changed with a probability of at most ``alpha``: the
    first search of each is corrected by Holm over all that are long enough. Further changes are looked for only in
    series that have one, each at ``alpha``.

    Args:
        series: logs, in order of time; one shorter than FEWEST isn't searched.
        searching: is told how many series have been searched, of how many.
    """
    values = [np.asarray(one, dtype=float) for one in series]
    draw = np.random.default_rng(seed)
    searched = [row for row, one in enumerate(values) if len(one) >= FEWEST]
    firsts: list[tuple[int, float]] = []
    for row in searched:
        if searching:
            searching(len(firsts), len(searched))
        firsts.append(_search(values[row], draw, alpha / len(searched)))
    raw = np.array([p for _, p in firsts], dtype=float)
    adjusted = holm(raw, np.zeros(len(raw), dtype=np.int64)) if len(raw) else raw
    found: list[list[ChangePoint]] = [[] for _ in series]
    for row, (split, _), p in zip(searched, firsts, adjusted.tolist(), strict=True):
        if p <= alpha:
            one = values[row]
            changes = [
                (split, float(p)),
                *_within(one, 0, split, draw, alpha),
                *_within(one, split, len(one), draw, alpha),
            ]
            found[row] = _with_effects(one, sorted(changes))
    return found


def _within(values: Floats, start: int, end: int, draw: np.random.Generator, alpha: float) -> list[tuple[int, float]]:
    """Further changes between two places of a series, by halves."""
    if end - start < FEWEST:
        return []
    split, p = _search(values[start:end], draw, alpha)
    if p > alpha:
        return []
    at = start + split
    return [(at, p), *_within(values, start, at, draw, alpha), *_within(values, at, end, draw, alpha)]


def _with_effects(values: Floats, changes: Sequence[tuple[int, float]]) -> list[ChangePoint]:
    edges = [0, *(at for at, _ in changes), len(values)]
    means = [float(np.mean(values[start:end])) for start, end in itertools.pairwise(edges)]
    return [
        ChangePoint(at, float(np.expm1(after - before)), p)
        for (at, p), (before, after) in zip(changes, itertools.pairwise(means), strict=True)
    ]


def _search(values: Floats, draw: np.random.Generator, level: float) -> tuple[int, float]:
    """The place of the greatest energy statistic, and its p-value, as fine as a test at ``level`` needs it."""
    if np.ptp(values) <= NO_VARIATION:  # the mean of three equal times isn't always that of two
        return LEAST, 1.0
    if len(values) <= LONGEST:
        least = min(_MOST_DRAWS, max(_LEAST_DRAWS, math.ceil(_FINER / level)))
        split, _, p = _permuted(values, draw, max(least, min(_MOST_DRAWS, _WORK // len(values) ** 2)))
        return split, p
    size = -(-len(values) // _STRETCHES)
    left_out = len(values) % size  # the oldest: a stretch of other size wouldn't be exchangeable
    stretches = values[left_out:].reshape(-1, size).mean(axis=1)
    split, end, p = _permuted(stretches, draw, min(_MOST_DRAWS, max(_LEAST_DRAWS, math.ceil(_FINER_LONG / level))))
    return _nearby(values[: left_out + end * size], left_out + split * size, size), p


def _permuted(values: Floats, draw: np.random.Generator, most: int) -> tuple[int, int, float]:
    """Split and end of the greatest energy statistic, and its p-value from at most so many permutations."""
    weights = _weights(len(values))
    statistic = _energy(values[None], weights)[0]
    best = int(np.argmax(statistic))
    observed = float(statistic.flat[best]) * (1 - 1e-9)
    reached = drawn = 0
    chunk = min(250, max(1, _CELLS // len(values) ** 2))
    while drawn < most and reached < _ENOUGH:
        count = min(chunk, most - drawn)
        orders = draw.permuted(np.tile(np.arange(len(values)), (count, 1)), axis=1)
        for some in np.array_split(values[orders], -(-count * len(values) ** 2 // _AT_ONCE)):
            reached += int(np.sum(_energy(some, weights).max(axis=(1, 2)) >= observed))
        drawn += count
    # Chunks make the stop a little later than Besag & Clifford's; counting the observed order keeps p valid in both.
    return best // len(values) + 1, best % len(values) + 1, (reached + 1) / (drawn + 1)


def _nearby(values: Floats, split: int, reach: int) -> int:
    """The split of the greatest energy statistic at most ``reach`` points from ``split``; all of ``values`` count."""

    def within(some: Floats) -> float:  # the sum of all distances, from the sorted values
        return float(2 * np.sum((2 * np.arange(len(some)) - len(some) + 1) * np.sort(some)))

    def energy(at: int) -> float:
        m, n = at, len(values) - at
        left, right = within(values[:at]), within(values[at:])
        between = (total - left - right) / 2
        return (2 * between / (m * n) - left / (m * (m - 1)) - right / (n * (n - 1))) * m * n / (m + n)

    total = within(values)
    return max(range(max(LEAST, split - reach), min(len(values) - LEAST, split + reach) + 1), key=energy)


@functools.lru_cache(maxsize=8)
def _weights(length: int) -> tuple[Floats, Floats, Floats, Floats]:
    """What the sums of ``_energy`` are multiplied by, each of shape (n, n): by split less 1 and end less 1.

    The fourth is added: minus infinity where fewer than LEAST points are left on a side.
    """
    m = np.arange(1.0, length + 1)[:, None]
    n = m.T - m
    inside = (m >= LEAST) & (n >= LEAST)
    m, n = np.where(inside, m, np.nan), np.where(inside, n, np.nan)
    scale = m * n / (m + n)
    cross = scale * (2 / (m * n) + 2 / (n * (n - 1)))
    left = -scale * (2 / (m * n) + 1 / (m * (m - 1)) + 1 / (n * (n - 1)))
    right = -scale / (n * (n - 1))
    cross, left, right = (np.where(inside, one, 0.0) for one in (cross, left, right))
    return cross, left, right, np.where(inside, 0.0, -np.inf)


def _energy(values: Floats, weights: tuple[Floats, Floats, Floats, Floats]) -> Floats:
    """Matteson & James' Q of every split and end; ``values`` have shape (orders, n), the result (orders, n, n).

    With S the sums of distances up to two places: left S(split, split), across S(split, end) less that, then the rest.
    """
    cross, left, right, outside = weights
    sums = values[:, :, None] - values[:, None, :]
    np.abs(sums, out=sums)
    np.cumsum(sums, axis=1, out=sums)
    np.cumsum(sums, axis=2, out=sums)
    own = np.diagonal(sums, axis1=1, axis2=2).copy()
    sums *= cross
    sums += own[:, :, None] * left
    sums += own[:, None, :] * right
    sums += outside
    return sums
