"""Where a series of figures changed for good: e-divisive, with p-values by permutation.

Source: Matteson & James (2014), A nonparametric approach for multiple change point analysis of multivariate data, JASA
109:334 (the energy statistic, its search over both ends, the permutation test); used on nightly benchmarks by Daly et
al. (2020), The use of change point detection to identify software performance regressions in a continuous integration
system, ICPE. The p-values are sequential (Besag & Clifford 1991, Biometrika 78:301): a series in which nothing stands
out is not permuted to the end.

A permutation test takes the dates to be exchangeable where nothing changed. A slow drift isn't that, and is found as
steps.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np

from gpubench.stats.gate import holm
from gpubench.stats.runs import Floats, Ints

LEAST = 3
"""Points on each side of a change; a bump of fewer is an outlier."""

FEWEST = 8
"""Points of a series that is searched: below, no arrangement is rare enough to be called a change."""

_ENOUGH = 30
"""Permutations that reach what was observed, after which a search ends: nothing stands out."""
_MOST_DRAWS, _LEAST_DRAWS, _FINER = 9_999, 999, 20
"""Permutations of a search: at most and at least, and as many as make its smallest p this part of what Holm asks."""
_WORK = 10**8
"""Distances in all permutations of a search together, from which on there are fewer than the most."""
_CELLS = 2**22
"""Distances of the permutations that are looked at together: bounds the memory of long series, some 100 MB."""


@dataclasses.dataclass(frozen=True)
class ChangePoint:
    """A change: ``at`` is the first point that is different.

    ``effect`` is what the mean changed by as a ratio minus one, between the stretches on both sides up to the next
    changes. ``p`` is after Holm over all series for the change that a series was singled out by, else of that search.
    """

    at: int
    effect: float
    p: float


def change_points(series: Sequence[Sequence[float]], seed: int, alpha: float = 0.05) -> list[list[ChangePoint]]:
    """The changes of every series, in order.

    Where nothing changes in any series, one or more is called changed with a probability of at most ``alpha``: the
    first search of each is corrected by Holm over all that are long enough. Further changes are looked for only in
    series that have one, each at ``alpha``.

    Args:
        series: logs, in order of time; one shorter than FEWEST isn't searched.
        seed: of the permutations.
        alpha: rate of false alarms.
    """
    values = [np.asarray(one, dtype=float) for one in series]
    draw = np.random.default_rng(seed)
    searched = [row for row, one in enumerate(values) if len(one) >= FEWEST]
    firsts = [_search(values[row], draw, alpha / len(searched)) for row in searched]
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
    least = min(_MOST_DRAWS, max(_LEAST_DRAWS, math.ceil(_FINER / level)))
    most = max(least, min(_MOST_DRAWS, _WORK // len(values) ** 2))
    distance = np.abs(values[:, None] - values[None, :])
    splits, ends = _places(len(values))
    statistic = _energy(distance[None], splits, ends)[0]
    best = int(np.argmax(statistic))
    observed = float(statistic[best]) * (1 - 1e-9)
    reached = drawn = 0
    chunk = min(250, max(1, _CELLS // len(values) ** 2))
    while drawn < most and reached < _ENOUGH:
        count = min(chunk, most - drawn)
        orders = draw.permuted(np.tile(np.arange(len(values)), (count, 1)), axis=1)
        greatest = _energy(distance[orders[:, :, None], orders[:, None, :]], splits, ends).max(axis=1)
        reached, drawn = reached + int(np.sum(greatest >= observed)), drawn + count
    # Chunks make the stop a little later than Besag & Clifford's; counting the observed order keeps p valid in both.
    return int(splits[best]), (reached + 1) / (drawn + 1)


def _places(length: int) -> tuple[Ints, Ints]:
    """Every pair of a split and an end behind it that leaves LEAST points on both sides."""
    pairs = [(at, end) for at in range(LEAST, length - LEAST + 1) for end in range(at + LEAST, length + 1)]
    splits, ends = np.array(pairs, dtype=np.int64).T
    return splits, ends


def _energy(distance: Floats, splits: Ints, ends: Ints) -> Floats:
    """Matteson & James' Q of every place; ``distance`` has shape (orders, n, n), the result (orders, places)."""
    sums = np.zeros((len(distance), distance.shape[1] + 1, distance.shape[1] + 1))
    sums[:, 1:, 1:] = distance.cumsum(axis=1).cumsum(axis=2)
    left, cross = sums[:, splits, splits], sums[:, splits, ends]
    right = sums[:, ends, ends] - 2 * cross + left
    m, n = splits, ends - splits
    apart = 2 * (cross - left) / (m * n) - left / (m * (m - 1)) - right / (n * (n - 1))
    weighted: Floats = apart * m * n / (m + n)
    return weighted
