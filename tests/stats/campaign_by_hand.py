"""Small campaigns written by hand: what each test needs and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpubench.stats.data import CellRun, ComparisonInput
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict, judge

WOBBLE = (0.99, 1.0, 1.01)


def run(block, variant, times, *, order=None, started_at=None, status="ok", job=""):
    return CellRun(f"{variant}{block}", block, variant, order, started_at, tuple(times), status, job)


def blocks_of(differences: Sequence[float], *, wobble=WOBBLE, level=1.0, job="") -> list[CellRun]:
    """One block per log difference, orders alternating; every run takes ``level`` seconds times ``wobble``."""
    runs = []
    for block, difference in enumerate(differences, start=1):
        for variant, effect in (("A", 0.0), ("B", difference)):
            order = (block + (variant == "B")) % 2
            runs.append(run(block, variant, level * np.exp(effect) * np.array(wobble), order=order, job=job))
    return runs


def comparison(runs, *, planned=8, **key) -> ComparisonInput:
    return ComparisonInput({"workload": "merge", "nodes": 2, **key}, "A", "B", tuple(runs), planned)


def two_origins(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], refused="") -> ComparisonInput:
    """The seconds of every block of two places; blocks of both have the same numbers."""
    runs = [
        CellRun(f"{label}{block}", block, label, None, None, tuple(times), "ok", origin=label)
        for label, side in (("A", first), ("B", second))
        for block, times in enumerate(side)
    ]
    return ComparisonInput({"workload": "merge"}, "A", "B", runs, 0, refused=refused)


def cell(differences, **key) -> ComparisonInput:
    return comparison(blocks_of(differences), planned=len(differences), **key)


def one(runs_or_differences, settings=None, **options) -> Verdict:
    """The verdict of a family of one."""
    given = list(runs_or_differences)
    runs = given if given and isinstance(given[0], CellRun) else blocks_of(given)
    return judge([comparison(runs, **options)], settings or VerdictSettings())[0]


def without(runs, *gone, status="failed"):
    """The same runs, some (block, variant) of them ended with another status."""
    return [
        run(r.block, r.variant, (), order=r.order, status=status) if (r.block, r.variant) in gone else r for r in runs
    ]


def noisy(count, *, effect=0.0, sd=0.01, seed=1):
    """Log differences with exactly this mean and standard deviation."""
    draws = np.random.default_rng(seed).standard_normal(count)
    return effect + sd * (draws - draws.mean()) / draws.std(ddof=1)
