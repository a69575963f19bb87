"""What of the samples is judged: cells that hold another metric than seconds, and what to know of it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpubench.errors import DataError
from gpubench.merge.family import Cell, cells
from gpubench.merge.table import Merged
from gpubench.model.plan import Plan
from gpubench.spec.waiting import MENDED_BY, polls
from gpubench.stats.settings import Metric
from gpubench.store.accounting import RunOutcome

MEANING: dict[Metric, str] = {
    Metric.WALL_S: "seconds of a repetition",
    Metric.CPU_S: "processor seconds of scheduler, workers and client in a repetition",
    Metric.ENERGY_J: "joules of the run's processors and GPUs in a repetition",
    Metric.BYTES_MOVED: "bytes that moved between workers in all timed repetitions of a run",
}
_WITHOUT: dict[Metric, str] = {
    Metric.CPU_S: "an older gpubench measured it, or only workloads that have none; measure again",
    Metric.ENERGY_J: "an older gpubench measured it, or NVML and RAPL can't be read on its nodes; the manual's "
    "page on metrics says how to allow it",
    Metric.BYTES_MOVED: "its workloads move nothing between workers; take one that does: merge, transpose-sum",
}


def cells_of(
    plan: Plan, outcomes: Iterable[RunOutcome], merged: Merged, metric: Metric, moved: Mapping[str, Mapping[str, int]]
) -> list[Cell]:
    """As ``family.cells``, with the metric in place of seconds.

    Args:
        moved: bytes of each run's workloads, by run and ``params_id``.
    """
    if metric is not Metric.BYTES_MOVED:
        return cells(plan, outcomes, merged, metric)
    return [_moved(cell, moved) if cell.status == "ok" else cell for cell in cells(plan, outcomes, merged)]


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
