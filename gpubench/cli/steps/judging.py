"""From run directories to results, verdicts and the report."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from gpubench.cli.say import warn
from gpubench.cli.steps.running import alive_jobs
from gpubench.merge.family import cells, family
from gpubench.merge.read import read_runs
from gpubench.merge.table import merge, parquet
from gpubench.stats.settings import Settings
from gpubench.stats.verdict import Verdict, judge
from gpubench.store.accounting import Accounting, account
from gpubench.store.campaign import Campaign
from gpubench.store.files import write_atomically

VERDICTS = "gpubench/verdicts/1"


@dataclasses.dataclass(frozen=True)
class Judged:
    """A campaign as it stands: what became of every run, the merged samples, and the verdicts."""

    campaign: Campaign
    accounting: Accounting
    merged: Any
    cells: list[Any]
    verdicts: list[Verdict]
    settings: Settings


def judge_campaign(campaign: Campaign, margin: float | None = None) -> Judged:
    """Merge what is there, judge the whole planned family, and write ``results.parquet`` and ``verdicts.json``.

    Args:
        campaign: may still be running, or be a copy.
        margin: another than the plan's; then the files on disk stay as they are.
    """
    accounting = account(campaign, alive=alive_jobs(campaign))
    read = read_runs(campaign.runs_dir)
    merged = merge(read.runs)
    for problem in [*accounting.warnings, *(str(error) for error in (*read.errors, *merged.errors))]:
        warn(problem)
    table = cells(campaign.plan, accounting.outcomes, merged.frame)
    settings = Settings(margin=campaign.plan.margin if margin is None else margin, seed=campaign.plan.seed)
    verdicts = judge(family(campaign.plan, table), settings)
    judged = Judged(campaign, accounting, merged, table, verdicts, settings)
    write_atomically(campaign.results, parquet(merged.frame))
    if margin is None:
        write_atomically(campaign.verdicts, json.dumps(as_json(judged), indent=1, ensure_ascii=False) + "\n")
    return judged


def as_json(judged: Judged) -> dict[str, Any]:
    """The verdicts for machines; effects and bounds are ratios minus one."""
    return {
        "schema": VERDICTS,
        "campaign": judged.campaign.plan.campaign,
        "baseline": judged.campaign.plan.baseline,
        "margin": judged.settings.margin,
        "summary": judged.settings.summary,
        "runs": judged.accounting.counts(),
        "cells": [verdict_json(verdict) for verdict in judged.verdicts],
    }


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """One cell; the key's parts stand beside the figures."""
    plain = dataclasses.asdict(verdict)
    return {**dict(plain.pop("key")), **plain}
