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
_DENSITIES = np.geomspace(0.05, 20.0, 60)
"""Levels of density, in units of the mean density between the first and the ninth decile."""
_CRITICAL = 1.14
"""Of √n times the excess mass: 0.5 to 1 % of simulated uniform samples of 30 to 400 values exceed it."""


def several_modes(runs: Iterable[Sequence[float]], *, apart: float) -> bool:
    """Whether the samples within these runs, in seconds, have more than one mode (test at 1 % against the uniform).

    Where the middle four fifths of them are no wider than ``apart`` (in logs), nobody cares.
    """
    values = pooled(runs)
    if len(values) < LEAST or np.subtract(*np.quantile(values, (0.9, 0.1))) <= apart:
        return False
    return bool(excess_mass(values) * np.sqrt(len(values)) > _CRITICAL)


def pooled(runs: Iterable[Sequence[float]]) -> Floats:
    """Logs of the samples of several runs, each less its run's mean: modes between runs are the restarts' scatter.

    Of more than ``MOST``, evenly spaced ones.
    """
    centred = [np.log(run) - np.log(run).mean() for run in runs if len(run) > 1]
    values = np.concatenate(centred) if centred else np.zeros(0)
    return values[np.linspace(0, len(values) - 1, min(len(values), MOST)).astype(int)] if len(values) else values


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
    difference: Floats = (best_two - best_one).max(axis=-1)
    return difference
