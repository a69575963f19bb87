"""From the cells of a campaign to what its scaling is judged by. Pure."""

import dataclasses
from collections.abc import Iterable
from typing import cast

import numpy as np

from gpubench.merge.family import Cell
from gpubench.model.plan import Place, Plan, PlannedWorkload
from gpubench.stats.runs import number_runs
from gpubench.stats.scaling import Rule, ScalingPoint
from gpubench.workloads.catalogue import CATALOGUE


@dataclasses.dataclass(frozen=True)
class ScalingCurve:
    """One workload under one variant at every place of the campaign, ``measured`` ascending by place."""

    workload: PlannedWorkload
    variant: str
    rule: Rule
    measured: list[ScalingPoint]


def curves(plan: Plan, table: Iterable[Cell]) -> list[ScalingCurve]:
    """One per workload and variant, in the plan's order; of runs that are ``ok``."""
    logs = _logs(plan, table)
    return [
        ScalingCurve(
            workload,
            variant.label,
            cast("Rule", CATALOGUE[workload.name].scaling) if workload.name in CATALOGUE else "none",
            [
                ScalingPoint(
                    *place,
                    plan.threads_per_worker,
                    tuple(logs.get((workload.params_id, variant.label, place), {}).values()),
                )
                for place in plan.places
            ],
        )
        for workload in plan.workloads
        for variant in plan.variants
    ]


def _logs(plan: Plan, table: Iterable[Cell]) -> dict[tuple[str, str, Place], dict[str, float]]:
    """Log seconds of every run, by workload, variant and place."""
    by_count: dict[int, list[Cell]] = {}
    for cell in table:
        if cell.status == "ok" and cell.wall_s:
            by_count.setdefault(len(cell.wall_s), []).append(cell)
    found: dict[tuple[str, str, Place], dict[str, float]] = {}
    for several in by_count.values():  # all runs with as many samples at once
        numbers = number_runs(np.asarray([cell.wall_s for cell in several])).summary(plan.summary)
        for cell, number in zip(several, numbers.tolist(), strict=True):
            outcome = cell.outcome
            key = (cell.workload.params_id, outcome.run.variant, outcome.job.place)
            found.setdefault(key, {})[outcome.run.run] = number
    return found
