"""The family: for every planned comparison the runs of both variants, whatever became of them. Pure.

What of the samples is judged: cells that hold another metric than seconds, and what to know of it. Pure.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import polars as pl

from gpubench.errors import DataError
from gpubench.merge.samples import AT
from gpubench.merge.table import Merged
from gpubench.model.plan import Comparison, Place, Plan, PlannedWorkload
from gpubench.spec import RUN_STATUSES
from gpubench.spec.plain import canonical
from gpubench.spec.waiting import MENDED_BY, polls
from gpubench.stats.data import ComparisonInput, RunSamples, Status
from gpubench.stats.settings import Metric
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


def cells(plan: Plan, outcomes: Iterable[RunOutcome], merged: Merged, metric: Metric = Metric.WALL_S) -> list[Cell]:
    """Every workload of every planned run, in planned order, with its samples in the merged table.

    ``metric``: the column of a sample that the cells' ``wall_s`` hold. A cell without it is ``skipped``.
    """
    workloads = {workload.params_id: workload for workload in plan.workloads}
    params = {workload.params_id: canonical(workload.params).decode() for workload in plan.workloads}
    timed = _timed(merged, metric)
    return [
        _cell(outcome, workloads[params_id], params[params_id], timed, metric)
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


def _cell(
    outcome: RunOutcome, workload: PlannedWorkload, params: str, timed: Mapping[_CellKey, _Timed], metric: Metric
) -> Cell:
    found = timed.get((outcome.run.run, outcome.attempt, workload.name, workload.backend, params))
    status, reason = _ending(outcome, workload, found)
    if found is None:
        return Cell(outcome, workload, status, reason)
    if None in found.wall_s:
        return Cell(outcome, workload, "skipped" if status == "ok" else status, reason or f"no {metric}")
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


def _timed(merged: Merged, metric: Metric) -> dict[_CellKey, _Timed]:
    timed = merged.samples.filter(~pl.col("warmup"))
    at = timed[AT].to_numpy()
    if not len(at):
        return {}
    starts = np.flatnonzero(np.diff(at, prepend=-1))  # samples of a workload stand together
    wrong = np.logical_or.reduceat((timed["answer"] == "wrong").to_numpy(), starts).tolist()
    unchecked = np.logical_or.reduceat((timed["answer"] == "unchecked").to_numpy(), starts).tolist()
    begun = np.minimum.reduceat(timed["started_at"].to_physical().to_numpy(), starts).tolist()
    wall_s = timed[metric].to_list()
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


MEANING: dict[Metric, str] = {
    Metric.WALL_S: "seconds of a repetition",
    Metric.CPU_S: "processor seconds of scheduler, workers and client in a repetition",
    Metric.ENERGY_J: "joules of the run's processors and GPUs in a repetition",
    Metric.BYTES_MOVED: "bytes that moved between workers in all timed repetitions of a run",
}
_WITHOUT: dict[Metric, str] = {
    Metric.CPU_S: "its workloads have none",
    Metric.ENERGY_J: "NVML and RAPL can't be read on its nodes; the manual's page on metrics says how to allow it",
    Metric.BYTES_MOVED: "its workloads move nothing between workers; take one that does: merge, transpose-sum",
}


def cells_of(
    plan: Plan, outcomes: Iterable[RunOutcome], merged: Merged, metric: Metric, moved: Mapping[str, Mapping[str, int]]
) -> list[Cell]:
    """As ``family.cells``, with the metric in place of seconds.

    Args:
        moved: bytes of each run's workloads, by run and ``params_id``.
    """
    if metric is Metric.ENERGY_J:
        return [_energy(cell) if cell.wall_s else cell for cell in cells(plan, outcomes, merged, metric)]
    if metric is not Metric.BYTES_MOVED:
        return cells(plan, outcomes, merged, metric)
    return [_moved(cell, moved) if cell.status == "ok" else cell for cell in cells(plan, outcomes, merged)]


def _energy(cell: Cell) -> Cell:
    """If a repetition shows no energy: the same cell with one number, the run's joules per repetition.

    A GPU's counter moves ten times a second (H100, H200). What one short repetition shows depends on chance; the sum
    over all repetitions of the run doesn't.
    """
    if min(cell.wall_s) > 0:
        return cell
    mean = sum(cell.wall_s) / len(cell.wall_s)
    if mean > 0:
        return dataclasses.replace(cell, wall_s=(mean,))
    reason = cell.reason or f"no {Metric.ENERGY_J}"
    return dataclasses.replace(cell, status="skipped" if cell.status == "ok" else cell.status, reason=reason, wall_s=())


def _moved(cell: Cell, moved: Mapping[str, Mapping[str, int]]) -> Cell:
    found = moved.get(cell.outcome.run.run, {}).get(cell.workload.params_id, 0)
    if found:
        return dataclasses.replace(cell, wall_s=(float(found),))
    return dataclasses.replace(cell, status="skipped", reason=f"no {Metric.BYTES_MOVED}", wall_s=())


def without(table: Sequence[Cell], metric: Metric, place: str) -> set[str]:
    """``params_id`` of workloads that have been measured and never have the metric: no comparison of it is about them.

    Raises:
        DataError: no workload has it, or joules are those of different counters.
    """
    lacking = {cell.workload.params_id for cell in table if cell.reason == f"no {metric}"}
    lacking -= {cell.workload.params_id for cell in table if cell.wall_s}
    if lacking and not any(cell.wall_s for cell in table):
        raise DataError(f"{place}: its samples have no {metric}", then=_WITHOUT[metric])
    if metric is Metric.ENERGY_J:
        _refuse_other_counters(table, place)
    return lacking


def _refuse_other_counters(table: Iterable[Cell], place: str) -> None:
    seen: dict[tuple[str, object], set[tuple[str, ...]]] = {}
    for cell in table:
        for one in cell.outcome.record.workloads if cell.wall_s and cell.outcome.record else ():
            if one.params_id == cell.workload.params_id:
                names = sorted(str(name).rpartition("/")[2] for name in one.details.get("energy_of", ()))
                seen.setdefault((one.workload, cell.outcome.job.place), set()).add(tuple(names))
    for (workload, _), counters in seen.items():
        if len(counters) > 1:
            sums = " and ".join(" + ".join(names) for names in sorted(counters))
            raise DataError(
                f"{place}: joules of {workload} are sums over different counters ({sums}), which can't be compared",
                then="let every node read the same ones, and measure again",
            )


def remarks(plan: Plan, metric: Metric, lacking: set[str]) -> Iterator[str]:
    """What stands beside the verdicts; nothing for seconds."""
    if metric is Metric.WALL_S:
        return
    yield f"metric {metric}: {MEANING[metric]}; more is worse: +5 % is 5 % more"
    names = [one.name for one in plan.workloads if one.params_id in lacking]
    if names:
        yield f"no {metric}, so in no comparison: {', '.join(dict.fromkeys(names))}"
    labels = [one.label for one in plan.variants if polls(plan.protocol, {**plan.site.env, **one.env})]
    if metric is Metric.CPU_S and labels:
        yield (
            f"{metric} of {', '.join(labels)} isn't informative: processes poll while they wait, so it is about their "
            f"number times the time; {MENDED_BY}"
        )
