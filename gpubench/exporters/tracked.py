"""What a tracker is told of a campaign, with the names that parsl-perf-runs uses and ours. Pure."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.merge.family import Cell
from gpubench.model.plan import Plan
from gpubench.spec import RunRecord
from gpubench.spec.plain import content_id
from gpubench.stats.verdict import Verdict

CAMPAIGN, RUN, CONTENT = "gpubench.campaign", "gpubench.run", "gpubench.content"
"""Tags by which an export is known again; CONTENT is set last, so that a torn export is seen to be one."""

_REFUSED = re.compile(r"[^\w.\-/ ]+")


@dataclasses.dataclass(frozen=True)
class Tracked:
    """One run of a tracker. Metrics are (name, value, milliseconds, step); ``artifacts`` are files by folder."""

    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Sequence[tuple[str, float, int, int]]
    started_ms: int
    ended_ms: int
    failed: bool = False
    artifacts: Sequence[tuple[Path, str]] = ()

    @property
    def content(self) -> str:
        """The hash of all that is said; files count by name and size."""
        files = [(path.name, folder, path.stat().st_size) for path, folder in self.artifacts]
        return content_id([self.name, dict(self.tags), dict(self.params), list(self.metrics), self.failed, files])


def campaign(
    plan: Plan,
    verdicts: Sequence[Verdict],
    names: Sequence[str],
    cells: Sequence[Cell],
    artifacts: Sequence[tuple[Path, str]],
) -> Tracked:
    """The run that holds the others: what was planned, what came out.

    Args:
        plan: of the campaign.
        verdicts: with ``names`` of their cells.
        names: short ones that tell the cells apart.
        cells: all of its cells; it ended with the last run.
        artifacts: report, scripts, manifests.
    """
    at = _ms(plan.created_at)
    metrics = [
        (_name(f"effect/{name}/{one.candidate} vs {one.baseline}"), one.effect, at, 0)
        for one, name in zip(verdicts, names, strict=True)
        if one.effect is not None
    ]
    words = {_name(f"verdict/{name}/{one.candidate}"): one.verdict for one, name in zip(verdicts, names, strict=True)}
    tags = {CAMPAIGN: plan.campaign, "site": plan.site.name, "suite": plan.suite, "gpubench": plan.gpubench, **words}
    params = {
        "variants": " ".join(one.label for one in plan.variants),
        "protocol": plan.protocol,
        "device": plan.device,
        "margin": f"{plan.margin:g}",
        "seed": str(plan.seed),
    }
    ends = [_ms(cell.outcome.record.ended_at) for cell in cells if cell.outcome.record]
    return Tracked(plan.campaign, tags, params, metrics, at, max(ends, default=at), artifacts=artifacts)


def runs(plan: Plan, cells: Sequence[Cell], names: Mapping[str, str]) -> Iterator[Tracked]:
    """A run per run that has a record: its samples as steps, the figures of its last batches by parsl-perf's names.

    Args:
        plan: of the campaign.
        cells: all of its cells.
        names: of the workloads, by ``params_id``.
    """
    by_run: dict[str, list[Cell]] = {}
    for cell in cells:
        by_run.setdefault(cell.outcome.run.run, []).append(cell)
    for group in by_run.values():
        outcome, record = group[0].outcome, group[0].outcome.record
        if record is None:
            continue
        started, ended = _ms(record.started_at), _ms(record.ended_at)
        metrics = [
            (f"{names[cell.workload.params_id]}/wall_s", seconds, started, step)
            for cell in group
            for step, seconds in enumerate(cell.wall_s)
        ]
        yield Tracked(
            f"block {outcome.block.block} {outcome.run.variant}",
            {CAMPAIGN: plan.campaign, RUN: outcome.run.run, **_tags(record)},
            _params(record),
            [*metrics, *_parsl_perf(record, started)],
            started,
            ended,
            failed=record.status != "ok",
        )


def _tags(record: RunRecord) -> dict[str, str]:
    said = {"status": record.status, "reason": record.reason[:500], "variant": record.variant, "site": record.site}
    parsl = any(one.backend == "parsl" for one in record.workloads)
    return said | ({"Parsl Executor": "HighThroughputExecutor"} if parsl else {})


def _params(record: RunRecord) -> dict[str, str]:
    """``cores_per_node`` is what the workers had: the original took the head node's."""
    cores = record.workers_per_node * record.threads_per_worker
    values = {
        "ucx_version": record.ucx_version,
        "image": record.image,
        "protocol": record.protocol,
        "device": record.device,
        "nodes": record.nodes,
        "workers_per_node": record.workers_per_node,
        "threads_per_worker": record.threads_per_worker,
        "block": record.block,
        "order": record.order,
        "cores_per_node": cores,
        "max_nodes": record.nodes,
        "max_cores": record.nodes * cores,
    }
    return {name: str(value) for name, value in values.items()}


def _parsl_perf(record: RunRecord, at: int) -> Iterator[tuple[str, float, int, int]]:
    """Of the last repetition's last batch; a run that measures tasks with several parameters says it of the first."""
    for workload in record.workloads:
        batches = _last_batches(workload.details) if workload.workload == "tasks" else []
        if not batches:
            continue
        last = batches[-1]
        figures = {
            "num_iterations": len(batches),
            "num_tasks": last.get("tasks"),
            "submission_s": last.get("submit_s"),
            "submission_tps": last.get("submit_per_s"),
            "runtime_s": last.get("run_s"),
            "runtime_tps": last.get("tasks_per_s"),
        }
        for name, value in figures.items():
            if isinstance(value, int | float):
                yield name, float(value), at, 0
        return


def _last_batches(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    kept = details.get("repetitions")
    last = kept[-1] if isinstance(kept, list) and kept else []
    return [one for one in last if isinstance(one, Mapping)] if isinstance(last, list) else []


def _ms(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


def _name(text: str) -> str:
    """Trackers take letters, digits, blanks and ``_.-/`` in names."""
    return _REFUSED.sub("_", text)[:250]
