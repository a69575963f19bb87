"""More than one mode in one cell: the excess mass test, a dip test by another road.

What takes 0.5 ms in some repetitions and 15 ms in others has two states. The mean says how often each came, and may be
another one next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gpubench.stats.runs import Floats

MOST = 400
"""Values that are looked at; more of them would tell smaller dents from none."""
LEAST = 30
TIES = 0.02
"""Of the samples; clocks count nanoseconds, and equal times come of rounding."""
ANCHOR = 1
"""Position of a run's sample, by time, that the others are held against: it lies in the faster of two states.

One straggler moves the mean of a run, one odd fast sample its minimum, and both make modes where there are none
(simulated: in 40 % and in 90 % of cells); the median lies in either state or between them.
"""
_DENSITIES = np.geomspace(0.05, 20.0, 60)
"""Levels of density, in units of the mean density between the first and the ninth decile."""
_CRITICAL = 1.14
"""Of √n times the excess mass: 0.5 to 1 % of simulated uniform samples of 30 to 400 values exceed it."""


def several_modes(runs: Iterable[Sequence[float]], *, apart: float) -> bool:
    """Whether the samples within these runs, in seconds, have more than one mode (test at 1 % against the uniform).

    Where the middle four fifths of them are no wider than ``apart`` (in logs), nobody cares. Samples that repeat in a
    run were rounded, and a step of rounding isn't a mode: then there is no answer, False.
    """
    runs = list(runs)
    values = pooled(runs)
    if sum(len(run) - len(set(run)) for run in runs) > TIES * sum(map(len, runs)):
        return False
    if len(values) < LEAST or np.subtract(*np.quantile(values, (0.9, 0.1))) <= apart:
        return False
    return bool(excess_mass(values) * np.sqrt(len(values)) > _CRITICAL)


def pooled(runs: Iterable[Sequence[float]]) -> Floats:
    """Logs of the samples of several runs, each less its run's ``anchor``; the anchors themselves are left out.

    Modes between runs are the restarts' scatter. Of more than ``MOST`` values, evenly spaced ones.
    """
    long = [run for run in runs if len(run) > ANCHOR + 1]
    ends = np.cumsum([len(run) - 1 for run in long])
    if not long:
        return np.zeros(0)
    positions = np.linspace(0, ends[-1] - 1, min(int(ends[-1]), MOST)).astype(int)
    found = []
    for at in np.unique(np.searchsorted(ends, positions, side="right")).tolist():  # few of thousands of runs
        ordered = np.sort(np.log(long[at]))
        start = int(ends[at]) - len(ordered) + 1
        inside = positions[(positions >= start) & (positions < ends[at])] - start
        found.append((np.delete(ordered, ANCHOR) - ordered[ANCHOR])[inside])
    return np.concatenate(found)


def anchor(run: Sequence[float]) -> float:
    """The second fastest sample of a run of at least two: what the others are held against."""
    return float(np.sort(run)[min(ANCHOR, len(run) - 1)])


def excess_mass(values: Floats) -> Floats:
    """What two intervals hold above a level of density, less what one holds; the largest over all levels.

    Twice Hartigan's dip, but for the levels' being finitely many.

    Args:
        values: shape (..., n).

    Returns:
        Shape (...), from 0 to 1.

    Source: Müller and Sawitzki, Excess mass estimates and tests for multimodality, JASA 86 (1991).
    """
    ordered = np.sort(values, axis=-1)
    count = ordered.shape[-1]
    width = np.maximum(ordered[..., int(0.9 * (count - 1))] - ordered[..., int(0.1 * (count - 1))], 1e-12)
    gaps = np.diff(ordered, axis=-1) / width[..., None]
    each = 1.0 / count
    shape = (*ordered.shape[:-1], len(_DENSITIES))
    one, best_one = np.full(shape, each), np.full(shape, each)
    two, best_two = np.full(shape, each), np.full(shape, each)
    for at in range(count - 1):
        lost = _DENSITIES * gaps[..., at, None]
        two = np.maximum(two - lost, best_one) + each
        one = np.maximum(one - lost, 0.0) + each
        np.maximum(best_one, one, out=best_one)
        np.maximum(best_two, two, out=best_two)
    return np.asarray((best_two - best_one).max(axis=-1))
