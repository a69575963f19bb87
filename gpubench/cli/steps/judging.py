"""From run directories to results, verdicts and the report."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from typing import Any

from gpubench import resources
from gpubench.cli.say import warn
from gpubench.cli.steps.running import alive_jobs
from gpubench.merge.family import Cell, cells, family
from gpubench.merge.read import read_runs
from gpubench.merge.table import Merged, merge, parquet
from gpubench.report import ReportInputs, verdicts_json
from gpubench.spec.records import PROVENANCE_FILE
from gpubench.stats.settings import Settings
from gpubench.stats.verdict import Verdict, judge
from gpubench.store.accounting import Accounting, account
from gpubench.store.campaign import Campaign
from gpubench.store.files import write_atomically


@dataclasses.dataclass(frozen=True)
class Judged:
    """A campaign as it stands: what became of every run, the merged samples, and the verdicts."""

    campaign: Campaign
    accounting: Accounting
    merged: Merged
    cells: list[Cell]
    verdicts: list[Verdict]
    settings: Settings
    warnings: tuple[str, ...]


def judge_campaign(campaign: Campaign, margin: float | None = None) -> Judged:
    """Merge what is there, judge the whole planned family, and write ``results.parquet`` and ``verdicts.json``.

    Args:
        campaign: may still be running, or be a copy.
        margin: another than the plan's; then the files on disk stay as they are.
    """
    accounting = account(campaign, alive=alive_jobs(campaign))
    read = read_runs(campaign.runs_dir)
    merged = merge(read.runs)
    problems = [str(error) for error in (*read.errors, *merged.errors)]
    warnings = (*accounting.warnings, *problems, *merged.warnings)
    for warning in warnings:
        warn(warning)
    table = cells(campaign.plan, accounting.outcomes, merged.frame)
    settings = Settings(margin=campaign.plan.margin if margin is None else margin, seed=campaign.plan.seed)
    verdicts = judge(family(campaign.plan, table), settings)
    judged = Judged(campaign, accounting, merged, table, verdicts, settings, warnings)
    write_atomically(campaign.results, parquet(merged.frame))
    if margin is None:
        write_atomically(campaign.verdicts, verdicts_json(campaign.plan.campaign, verdicts, settings))
    return judged


def report_inputs(judged: Judged) -> ReportInputs:
    """What the report is made from, read from the campaign's directory."""
    campaign = judged.campaign
    return ReportInputs(
        plan=campaign.plan,
        outcomes=judged.accounting.outcomes,
        cells=judged.cells,
        verdicts=judged.verdicts,
        settings=judged.settings,
        provenance=_provenance(judged),
        manifests=campaign.manifests(),
        warnings=judged.warnings,
        generated_at=dt.datetime.now(dt.UTC),
        templates=resources.texts("templates"),
    )


def _provenance(judged: Judged) -> dict[str, dict[str, Any]]:
    found = {}
    for outcome in judged.accounting.outcomes:
        if outcome.directory is not None and (outcome.directory / PROVENANCE_FILE).exists():
            found[outcome.directory.name] = json.loads((outcome.directory / PROVENANCE_FILE).read_bytes())
    return found
