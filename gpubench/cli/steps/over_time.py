"""``gpubench history`` and ``gpubench changes``: over campaigns and imports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from gpubench import resources
from gpubench.cli.say import say, warn
from gpubench.cli.steps.choosing import all_opened
from gpubench.cli.steps.running import account_now
from gpubench.history import holes, observed
from gpubench.history.changes import find
from gpubench.history.observed import Observed
from gpubench.importers.directory import Imported
from gpubench.importers.pairing import points
from gpubench.merge.family import Cell, cells
from gpubench.merge.read import read_runs
from gpubench.merge.table import merge
from gpubench.model.known_issue import KnownIssue, load_known_issues
from gpubench.report.history import Source, changes_json, changes_lines, history_json, history_lines
from gpubench.stats.settings import Settings
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_provenance

Kept = Campaign | Imported


def show_history(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print what was measured when, and why the rest isn't there; raises UsageError where nothing is found."""
    rules = shipped_issues()
    sources = [_source(one, rules) for one in all_opened(directories)]
    if as_json:
        say(json.dumps(history_json(sources), indent=1))
        return
    for line in history_lines(sources):
        say(line)


def show_changes(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print where the figures of a cell and version changed for good; raises UsageError where nothing is found."""
    figures = [figure for one in all_opened(directories) for figure in observed_of(one)]
    if not figures:
        warn("no figure has a date and a version, so there is no history to search")
    series = find(figures, Settings().seed)
    if as_json:
        say(json.dumps(changes_json(series), indent=1))
        return
    for line in changes_lines(series):
        say(line)


def observed_of(kept: Kept) -> list[Observed]:
    """The figures of a campaign or an import."""
    if isinstance(kept, Imported):
        return list(observed.of_import(kept.name, points(kept.table), kept.note["documents"]))
    table = _cells(kept)
    found = {one.outcome.run.run: one.outcome.directory for one in table}
    provenance = {run: read_provenance(directory) for run, directory in found.items() if directory}
    return list(observed.of_campaign(kept.plan, table, provenance, kept.manifests()))


def _cells(campaign: Campaign) -> list[Cell]:
    merged = merge(read_runs(campaign.runs_dir).runs)
    return cells(campaign.plan, account_now(campaign).outcomes, merged.frame)


def _source(kept: Kept, rules: Sequence[KnownIssue]) -> Source:
    if isinstance(kept, Imported):
        figures = observed_of(kept)
        dates = sorted({str(one.date) for one in figures})
        span = f"{len(dates)} dates, {dates[0]} to {dates[-1]}" if dates else "no dates"
        versions = sorted({one.variant for one in figures})
        about = f"{kept.note['format']}, {span}, versions {', '.join(versions)}; each sign is a date, # measured, . not"
        return Source("import", kept.name, about, dates, holes.of_import(figures, rules))
    plan, table = kept.plan, _cells(kept)
    lines = holes.of_campaign(plan, table)
    versions = [f"{one.label} (UCX {one.image.ucx_version if one.image else 'not built'})" for one in plan.variants]
    day = plan.created_at[:10]
    about = (
        f"{day}, site {plan.site.name}, suite {plan.suite}, {', '.join(versions)}; runs that are ok of those planned"
    )
    return Source("campaign", plan.campaign, about, [day], lines)


def shipped_issues() -> list[KnownIssue]:
    """The rules that come with gpubench."""
    path = resources.root() / "issues" / "known.toml"
    return load_known_issues(path.read_text(encoding="utf-8"), "issues/known.toml")
