"""What an earlier campaign of the same shape on this machine took, and how noisy it was."""

from __future__ import annotations

import datetime as dt
import statistics
from pathlib import Path
from typing import Any

from gpubench.errors import GpubenchError
from gpubench.model.plan import Plan
from gpubench.plan import History
from gpubench.stats.data import ComparisonInput
from gpubench.store.accounting import RunOutcome, account
from gpubench.store.campaign import PLAN_FILE, Campaign

LOOK_BACK = 5
"""Newest campaigns that are looked at: older ones ran on another day's machine."""


def find_history(outputs: Path, site: str, shape: dict[str, Any]) -> History | None:
    """The newest campaign of this shape with ``ok`` runs; None where there is none."""
    plans = sorted(outputs.glob(f"*/{PLAN_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in plans[:LOOK_BACK]:
        try:
            campaign = Campaign.open(path.parent)
        except GpubenchError:  # a damaged campaign is no history; whoever opens it by name is told
            continue
        if campaign.plan.site.name == site and shape_of(campaign.plan) == shape:
            durations = [run_seconds(outcome) for outcome in account(campaign).outcomes if outcome.status == "ok"]
            if durations:
                return History(campaign.plan.campaign, statistics.median(durations), len(durations), _pilot(campaign))
    return None


def shape_of(plan: Plan) -> dict[str, Any]:
    """What runs must have in common for the durations of one to foretell those of the other."""
    return {
        "protocol": plan.protocol,
        "runtime": plan.site.runtime,
        "arrangement": plan.site.layout.arrangement,
        "waiting": plan.site.layout.waiting,
        "device": plan.device,
        "workers_per_node": sorted({workers for _, workers in plan.places}),
        # Where a first pass chose the repetitions, runs take as long with other numbers of them.
        "workloads": sorted(
            (item.params_id, 0 if plan.first_pass else item.reps, item.warmup) for item in plan.workloads
        ),
    }


def _pilot(campaign: Campaign) -> list[ComparisonInput]:
    from gpubench.merge.family import cells, family
    from gpubench.merge.table import merge_directory

    merged = merge_directory(campaign.runs_dir)
    return family(campaign.plan, cells(campaign.plan, account(campaign).outcomes, merged))


def run_seconds(outcome: RunOutcome) -> float:
    """From a run's start to its record, without the time in which others had their turns; 0 without a record."""
    record = outcome.record
    if record is None:
        return 0.0
    ended, started = (dt.datetime.fromisoformat(stamp) for stamp in (record.ended_at, record.started_at))
    return (ended - started).total_seconds() - record.phases.get("waited", 0.0)
