"""The duration and the noise of an earlier campaign that had the shape of the planned one."""

import dataclasses
import datetime as dt
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import GpubenchError
from gpubench.model.plan import Place, Plan
from gpubench.node.spec import RunRecord
from gpubench.node.spec.turns import INTERLEAVED
from gpubench.plan.request import History, Request
from gpubench.stats.data import ComparisonInput
from gpubench.store.accounting import account
from gpubench.store.campaign import PLAN_FILE, Campaign
from gpubench.store.rundirs import record_seconds

LOOK_BACK = 5
"""How many of the newest campaigns are examined: the machine may have changed since older ones. The longest counts."""
ALIKE = 1.5
"""Repetitions of an earlier campaign's runs over those that are planned, at most, where the one foretells the other."""


def with_history(request: Request, outputs: Path) -> Request:
    """The request with a campaign of its shape below ``outputs``; the seconds are the first pass's, if there is one."""
    history = _longest(outputs, request.site.name, _shape(request))
    if first := request.tried:
        reps = {item.params_id: item.reps for item in request.workloads}
        earlier = [item for item in (history.pilot if history else ()) if _as_often(item, reps)]
        history = History(first.campaign, first.run_s(reps), 1, earlier, source="what the first pass took")
    return dataclasses.replace(request, history=history)


def _as_often(comparison: ComparisonInput, reps: Mapping[str, int]) -> bool:
    """Whether its runs had about as many repetitions as are planned: runs with fewer repetitions scatter more."""
    planned = reps.get(str(comparison.key["params_id"]), 0)
    counts = [len(run.wall_s) for run in comparison.runs if run.wall_s]
    return bool(planned and counts) and 1 / ALIKE <= planned / statistics.median(counts) <= ALIKE


def _longest(outputs: Path, site: str, shape: dict[str, Any]) -> History | None:
    """Of the newest campaigns of this shape that with most ``ok`` runs: the newest may have begun a minute ago."""
    plans = sorted(outputs.glob(f"*/{PLAN_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    durations: dict[Path, list[float]] = {}
    for path in plans[:LOOK_BACK]:
        try:
            campaign = Campaign.open(path.parent)
        except GpubenchError:  # a damaged campaign is no history; whoever opens it by name is told
            continue
        if campaign.plan.site.name == site and _shape(campaign.plan) == shape:
            durations[path.parent] = _durations(campaign)
    longest = max(durations, key=lambda directory: len(durations[directory]), default=None)
    if longest is None or not durations[longest]:
        return None
    campaign = Campaign.open(longest)
    seconds = durations[longest]
    return History(campaign.plan.campaign, statistics.median(seconds), len(seconds), _pilot(campaign))


def _durations(campaign: Campaign) -> list[float]:
    """Seconds of each ``ok`` run; in an interleaved block, whose clusters start together, its part of the block's."""
    blocks: dict[tuple[Place, int], list[RunRecord]] = {}
    for result in account(campaign).outcomes:
        if result.status == "ok" and result.record:
            blocks.setdefault((result.job.place, result.block.block), []).append(result.record)
    together = campaign.plan.site.layout.arrangement == INTERLEAVED
    return [seconds for records in blocks.values() for seconds in (_parts if together else _each)(records)]


def _each(records: Sequence[RunRecord]) -> list[float]:
    return [record_seconds(record) for record in records]


def _parts(records: Sequence[RunRecord]) -> list[float]:
    began = min(dt.datetime.fromisoformat(record.started_at) for record in records)
    ended = max(dt.datetime.fromisoformat(record.ended_at) for record in records)
    return [(ended - began).total_seconds() / len(records)] * len(records)


def _shape(of: Request | Plan) -> dict[str, Any]:
    """What runs must have in common for the durations of one to predict those of the other."""
    if isinstance(of, Plan):
        workers, tried = sorted({workers for _, workers in of.places}), bool(of.first_pass)
    else:
        workers, tried = [*of.workers], of.tried is not None
    return {
        "protocol": of.protocol,
        "runtime": of.site.runtime,
        "arrangement": of.site.layout.arrangement,
        "waiting": of.site.layout.waiting,
        "device": of.device,
        "workers_per_node": workers,
        # Where a first pass chose the repetitions, runs take as long with other numbers of them.
        "workloads": sorted((item.params_id, 0 if tried else item.reps, item.warmup) for item in of.workloads),
    }


def _pilot(campaign: Campaign) -> list[ComparisonInput]:
    # polars takes half a second, and most plans have no campaign of their shape before them.
    from gpubench.results.merge.family import cells, family  # noqa: PLC0415
    from gpubench.results.merge.table import sample_table  # noqa: PLC0415

    outcomes = account(campaign).outcomes
    return family(campaign.plan, cells(campaign.plan, outcomes, sample_table(outcomes)))
