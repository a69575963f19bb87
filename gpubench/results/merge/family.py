"""The family: for every planned comparison the runs of both variants, whatever became of them. Pure."""

import datetime as dt
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple, cast

import polars as pl

from gpubench.model.plan import Comparison, Place, Plan
from gpubench.node.spec import RunRecord, WorkloadSpec
from gpubench.node.spec.plain import canonical
from gpubench.node.spec.records import AFTER_A_FAILURE, WorkloadRecord
from gpubench.results.merge.moved import moved_bytes
from gpubench.stats.data import CellRun, ComparisonInput, Key, Status
from gpubench.store.accounting import RunResult


class _Timed(NamedTuple):
    wall_s: tuple[float, ...]
    wrong: bool
    started_at: float
    unchecked: bool
    bytes: int


_WorkloadRun = tuple[str, str, str, str]
"""Run, workload, back-end and parameters."""


def cells(plan: Plan, outcomes: Iterable[RunResult], samples: pl.DataFrame) -> list[CellRun]:
    """Every workload of every planned run, in planned order, with its samples in their table.

    A cell's status is that of the run, unless the run is ``ok`` and this workload isn't: it failed or was skipped,
    answered wrong (``failed``), or has not all its samples (``lost``). Where a run failed because a workload did, what
    was skipped after it stays ``skipped``: nothing is known of it.
    """
    workloads = {workload.params_id: workload for workload in plan.workloads}
    keys = {
        (workload.params_id, place): _key(plan, workload, place) for workload in plan.workloads for place in plan.places
    }
    timed, date = _timed(samples), day_of(plan)

    def cell(outcome: RunResult, workload: WorkloadSpec) -> CellRun:
        key = keys[workload.params_id, outcome.job.place]
        times = timed.get((outcome.run.run, workload.name, workload.backend, dict(key)["params"]))
        status, reason = _ending(outcome, workload, times)
        nodes, workers = outcome.job.place
        return CellRun(
            run=outcome.run.run,
            block=outcome.block.block,
            variant=outcome.run.variant,
            order=outcome.run.order,
            started_at=times.started_at if times else None,
            wall_s=times.wall_s if times else (),
            status=cast("Status", status),
            job=outcome.job.job,
            key=key,
            origin=plan.campaign,
            reason=reason,
            unchecked=bool(times and times.unchecked),
            date=date,
            workers=nodes * workers,
            bytes=(times.bytes or None) if times else None,
            moved=_moved(outcome, workload),
            lacking=_is_lacking(outcome, workload),
        )

    return [
        cell(outcome, workloads[params_id])
        for outcome in outcomes
        for params_id in outcome.run.workloads
        if params_id in workloads
    ]


def day_of(plan: Plan) -> dt.date:
    """The day that a campaign's figures are of."""
    return dt.datetime.fromisoformat(plan.created_at).date()


def _key(plan: Plan, workload: WorkloadSpec, place: Place) -> Key:
    return (
        ("workload", workload.name),
        ("backend", workload.backend),
        ("params", canonical(workload.params).decode()),
        ("params_id", workload.params_id),
        ("nodes", place[0]),
        ("workers_per_node", place[1]),
        ("threads_per_worker", plan.threads_per_worker),
        ("protocol", plan.protocol),
        ("device", plan.device),
    )


def family(plan: Plan, table: Iterable[CellRun], replaced: Set[int] = frozenset()) -> list[ComparisonInput]:
    """One entry per planned comparison, also where there is not one sample; appended blocks count as planned.

    Blocks that were ``replaced`` don't: those in their place do.
    """
    by_key: dict[tuple[Key, str], list[CellRun]] = {}
    for cell in table:
        by_key.setdefault((cell.key, cell.variant), []).append(cell)
    workloads = {workload.params_id: workload for workload in plan.workloads}
    keys = (_key(plan, workloads[comparison.params_id], comparison.place) for comparison in plan.comparisons)
    return [_comparison(plan, *pair, by_key, replaced) for pair in zip(plan.comparisons, keys, strict=True)]


def _comparison(
    plan: Plan,
    comparison: Comparison,
    key: Key,
    by_key: Mapping[tuple[Key, str], list[CellRun]],
    replaced: Set[int],
) -> ComparisonInput:
    sides = [by_key.get((key, variant), []) for variant in (comparison.baseline, comparison.candidate)]
    blocks = [{cell.block for cell in side} for side in sides]
    return ComparisonInput(
        key=dict(key),
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        runs=[cell for side in sides for cell in side],
        planned_blocks=len(set.intersection(*blocks) - replaced),
        skipped=plan.skip_reason(comparison.nodes, comparison.baseline, comparison.candidate),
    )


def _ending(outcome: RunResult, workload: WorkloadSpec, times: _Timed | None) -> tuple[str, str]:
    record = _record(outcome.record, workload) if outcome.record else None
    after_another = record is not None and record.status == "skipped" and _is_of_a_workload(outcome)
    if outcome.status != "ok" and not after_another:
        return outcome.status, outcome.reason
    if record is None:
        return "lost", "the run's record doesn't name this workload"
    if record.status != "ok":
        return record.status, record.reason or "no reason given"
    if times is not None and times.wrong:
        return "failed", "wrong answer"
    count = len(times.wall_s) if times else 0
    if count != workload.reps:
        # An average over fewer repetitions than planned is another quantity: the ones that are missing aren't random.
        return "lost", f"{count} of {workload.reps} samples"
    return "ok", ""


def _is_lacking(outcome: RunResult, workload: WorkloadSpec) -> bool:
    """Whether the cluster ran, and this workload alone said that it can't."""
    record = _record(outcome.record, workload) if outcome.record and outcome.status == "ok" else None
    return record is not None and record.status == "skipped" and not record.reason.startswith(AFTER_A_FAILURE)


def _is_of_a_workload(outcome: RunResult) -> bool:
    """Whether a run failed because a workload did, and the others ended or were skipped: not its cluster."""
    entries = outcome.record.workloads if outcome.record and outcome.status == "failed" else []
    return outcome.reason in {f"{entry.workload}: {entry.reason}" for entry in entries if entry.status == "failed"}


def _record(record: RunRecord, workload: WorkloadSpec) -> WorkloadRecord | None:
    return next((entry for entry in record.workloads if entry.params_id == workload.params_id), None)


def _moved(outcome: RunResult, workload: WorkloadSpec) -> int | None:
    record = _record(outcome.record, workload) if outcome.record else None
    if record is None:
        return None
    return moved_bytes(record.workload, record.backend, record.params, record.details, record.reps)


def _timed(samples: pl.DataFrame) -> dict[_WorkloadRun, _Timed]:
    timed = samples.filter(~pl.col("warmup"))
    by_workload = timed.group_by("run", "workload", "backend", "params", maintain_order=True).agg(
        pl.col("wall_s"),
        (pl.col("answer") == "wrong").any().alias("wrong"),
        pl.col("started_at").min().dt.epoch("us"),
        (pl.col("answer") == "unchecked").any().alias("unchecked"),
        pl.col("bytes").max(),
    )
    return {
        (run, *workload): _Timed(tuple(wall_s), wrong, started_us / 1e6, unchecked, most_bytes)
        for run, *workload, wall_s, wrong, started_us, unchecked, most_bytes in by_workload.iter_rows()
    }
