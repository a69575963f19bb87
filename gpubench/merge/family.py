"""The family: for every planned comparison the runs of both variants, whatever became of them. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import numpy as np
import polars as pl

from gpubench.merge.samples import AT
from gpubench.merge.table import Merged
from gpubench.model.plan import Comparison, Place, Plan, PlannedWorkload
from gpubench.spec import RUN_STATUSES
from gpubench.spec.plain import canonical
from gpubench.stats.data import ComparisonInput, RunSamples, Status
from gpubench.store.accounting import RunOutcome


@dataclasses.dataclass(frozen=True)
class Cell:
    """One workload in one planned run, and how it ended.

    ``status`` is that of the run, unless the run is ``ok`` and this workload isn't: it failed or was skipped, answered
    wrong (``failed``), or has not all its samples (``lost``). ``wall_s`` are the timed samples in the order of their
    repetitions and ``started_at`` (POSIX seconds) the start of the first; both stay empty where there are none.
    """

    outcome: RunOutcome
    workload: PlannedWorkload
    status: str
    reason: str = ""
    wall_s: tuple[float, ...] = ()
    started_at: float | None = None
    unchecked: bool = False


class _Timed(NamedTuple):
    wall_s: tuple[float, ...]
    wrong: bool
    started_at: float
    unchecked: bool


_Side = tuple[str, Place, str]
"""``params_id``, place and variant."""

_CellKey = tuple[str, int, str, str, str]


def cells(plan: Plan, outcomes: Iterable[RunOutcome], merged: Merged) -> list[Cell]:
    """Every workload of every planned run, in planned order, with its samples in the merged table."""
    workloads = {workload.params_id: workload for workload in plan.workloads}
    params = {workload.params_id: canonical(workload.params).decode() for workload in plan.workloads}
    timed = _timed(merged)
    return [
        _cell(outcome, workloads[params_id], params[params_id], timed)
        for outcome in outcomes
        for params_id in outcome.run.workloads
        if params_id in workloads
    ]


def family(plan: Plan, table: Iterable[Cell]) -> list[ComparisonInput]:
    """The input of ``stats.verdict.judge``: one entry per planned comparison, also where there is not one sample.

    Runs that may still end (``pending``) are left out: they are neither lost nor failed. ``planned_blocks`` counts the
    appended blocks too.
    """
    by_place: dict[_Side, list[Cell]] = {}
    for cell in table:
        place = (cell.workload.params_id, cell.outcome.job.place, cell.outcome.run.variant)
        by_place.setdefault(place, []).append(cell)
    params = {workload.params_id: canonical(workload.params).decode() for workload in plan.workloads}
    return [_comparison(plan, one, params[one.params_id], by_place) for one in plan.comparisons]


def _comparison(plan: Plan, one: Comparison, params: str, by_place: Mapping[_Side, list[Cell]]) -> ComparisonInput:
    sides = {name: by_place.get((one.params_id, one.place, name), []) for name in (one.baseline, one.candidate)}
    blocks = [{cell.outcome.block.block for cell in side} for side in sides.values()]
    return ComparisonInput(
        key={
            "workload": one.workload,
            "backend": one.backend,
            "params": params,
            "params_id": one.params_id,
            "nodes": one.nodes,
            "workers_per_node": one.workers_per_node,
            "threads_per_worker": one.threads_per_worker,
            "protocol": plan.protocol,
            "device": plan.device,
        },
        baseline=one.baseline,
        candidate=one.candidate,
        runs=[_run(cell) for side in sides.values() for cell in side if cell.status in RUN_STATUSES],
        planned_blocks=len(set.intersection(*blocks)),
        skipped=plan.skip_reason(one.nodes, one.baseline, one.candidate),
        unchecked=any(cell.unchecked for side in sides.values() for cell in side),
    )


def _run(cell: Cell) -> RunSamples:
    outcome = cell.outcome
    return RunSamples(
        run=outcome.run.run,
        block=outcome.block.block,
        variant=outcome.run.variant,
        order=outcome.run.order,
        started_at=cell.started_at,
        wall_s=cell.wall_s if cell.status == "ok" else (),
        status=cast("Status", cell.status),
        job=outcome.job.job,
    )


def _cell(outcome: RunOutcome, workload: PlannedWorkload, params: str, timed: Mapping[_CellKey, _Timed]) -> Cell:
    found = timed.get((outcome.run.run, outcome.attempt, workload.name, workload.backend, params))
    status, reason = _ending(outcome, workload, found)
    if found is None:
        return Cell(outcome, workload, status, reason)
    return Cell(outcome, workload, status, reason, found.wall_s, found.started_at, found.unchecked)


def _ending(outcome: RunOutcome, workload: PlannedWorkload, found: _Timed | None) -> tuple[str, str]:
    if outcome.status != "ok" or outcome.record is None:
        return outcome.status, outcome.reason
    record = None
    for one in outcome.record.workloads:
        if one.params_id == workload.params_id:
            record = one
            break
    if record is None:
        return "lost", "the run's record doesn't name this workload"
    if record.status != "ok":
        return record.status, record.reason or "no reason given"
    if found is not None and found.wrong:
        return "failed", "wrong answer"
    count = len(found.wall_s) if found else 0
    if count != workload.reps:
        # An average over fewer repetitions than planned is another quantity: the ones that are missing aren't random.
        return "lost", f"{count} of {workload.reps} samples"
    return "ok", ""


def _timed(merged: Merged) -> dict[_CellKey, _Timed]:
    timed = merged.samples.filter(~pl.col("warmup"))
    at = timed[AT].to_numpy()
    if not len(at):
        return {}
    starts = np.flatnonzero(np.diff(at, prepend=-1))  # samples of a workload stand together
    wrong = np.logical_or.reduceat((timed["answer"] == "wrong").to_numpy(), starts).tolist()
    unchecked = np.logical_or.reduceat((timed["answer"] == "unchecked").to_numpy(), starts).tolist()
    begun = np.minimum.reduceat(timed["started_at"].to_physical().to_numpy(), starts).tolist()
    wall_s = timed["wall_s"].to_list()
    ends = [*starts[1:].tolist(), len(wall_s)]
    keys = merged.about.select("run", "attempt", "workload", "backend", "params")[at[starts]].iter_rows()
    found: dict[_CellKey, _Timed] = {}
    for key, start, end, is_wrong, started_us, is_unchecked in zip(
        keys, starts.tolist(), ends, wrong, begun, unchecked, strict=True
    ):
        one = _Timed(tuple(wall_s[start:end]), is_wrong, started_us / 1e6, is_unchecked)
        if twice := found.get(key):  # the run's record has the workload twice
            started_at = min(one.started_at, twice.started_at)
            walls = (*twice.wall_s, *one.wall_s)
            one = _Timed(walls, twice.wrong or one.wrong, started_at, twice.unchecked or one.unchecked)
        found[key] = one
    return found
