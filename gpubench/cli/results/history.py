"""``gpubench history`` and ``gpubench changes``: over campaigns and imports."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpubench import resources
from gpubench.cli.campaign.running import account_now
from gpubench.cli.results.charts import write_images
from gpubench.cli.results.open_target import all_opened
from gpubench.cli.results.search_bar import search_bar
from gpubench.cli.say import say, say_text, warn
from gpubench.files import write_atomically
from gpubench.history import coverage, missing_intervals, observed
from gpubench.history.changes import find
from gpubench.history.missing_intervals import Gap
from gpubench.history.observed import Observed, day_of
from gpubench.importers.directory import ImportedResults
from gpubench.importers.pairing import points
from gpubench.merge.family import Cell, cells
from gpubench.merge.table import Merged, merge_directory
from gpubench.model.known_issue import KnownIssue, load_known_issues
from gpubench.report.export import Format, rendered
from gpubench.report.history import HistorySource, changes_json, changes_lines, history_json, history_lines
from gpubench.report.history_page import HistoryInputs, drawings, html
from gpubench.spec.plain import canonical
from gpubench.stats.settings import VerdictSettings
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records, read_provenance

Kept = Campaign | ImportedResults


@dataclasses.dataclass(frozen=True)
class Told:
    """What a campaign or an import adds to a history."""

    source: HistorySource
    figures: list[Observed]
    missing: list[Gap]


@dataclasses.dataclass(frozen=True)
class ReadTargets:
    """A campaign with its cells and the merged samples."""

    campaign: Campaign
    table: list[Cell]
    merged: Merged

    def figures(self) -> list[Observed]:
        """One per cell and variant, with the circumstances."""
        found = {one.outcome.run.run: one.outcome.directory for one in self.table}
        provenance = {run: read_provenance(directory) for run, directory in found.items() if directory}
        sizes = _sizes(self.campaign, self.merged)
        manifests = self.campaign.manifests()
        return list(observed.of_campaign(self.campaign.plan, self.table, provenance, manifests, sizes))


def show_history(
    directories: Sequence[Path], *, as_json: bool, page: Path | None, svg: Path | None, png: Path | None
) -> None:
    """Print what was measured when, and why the rest isn't there; raises UsageError where nothing is found.

    Args:
        directories: campaigns, imports, or directories that hold some.
        as_json: one object instead of lines.
        page: where the page over time goes.
        svg, png: where its charts go as files.
    """
    told = tell(directories)
    if page or svg or png:
        _draw(told, page, svg, png)
        return
    sources = [one.source for one in told]
    if as_json:
        say_text(json.dumps(history_json(sources), indent=1))
        return
    for line in history_lines(sources):
        say(line)


def _draw(told: Sequence[Told], page: Path | None, svg: Path | None, png: Path | None) -> None:
    figures = [figure for one in told for figure in one.figures]
    inputs = HistoryInputs(
        sources=[one.source for one in told],
        observed=figures,
        missing=[gap for one in told for gap in one.missing],
        series=find(figures, VerdictSettings().seed),
        templates=resources.texts("templates"),
    )
    if page:
        write_atomically(page, html(inputs))
        say(f"page: {page}")
    wished: dict[Format, Path | None] = {"svg": svg, "png": png}
    for form, target in wished.items():
        if target is not None:
            write_images(rendered(drawings(inputs), inputs.templates, form), target, "no figure has a date")


def show_changes(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print where the figures of a cell and version changed for good; raises UsageError where nothing is found."""
    figures = [figure for one in tell(directories) for figure in one.figures]
    if not figures:
        warn("no figure has a date and a version, so there is no history to search")
    with search_bar() as searching:
        series = find(figures, VerdictSettings().seed, searching)
    if as_json:
        say_text(json.dumps(changes_json(series), indent=1))
        return
    for line in changes_lines(series):
        say(line)


def tell(directories: Sequence[Path]) -> list[Told]:
    """Every campaign and import that is named or stands in a named directory; raises UsageError where none does."""
    rules = shipped_issues()
    return [
        tell_import(one, rules) if isinstance(one, ImportedResults) else _tell_campaign(one)
        for one in all_opened(directories)
    ]


def tell_import(kept: ImportedResults, rules: Sequence[KnownIssue]) -> Told:
    """The history that an import holds; ``rules`` may explain what is missing."""
    figures = list(observed.of_import(kept.name, points(kept.table), kept.note["documents"]))
    missing = missing_intervals.of_import(figures, rules)
    dates = sorted({str(one.date) for one in figures})
    span = f"{len(dates)} dates, {dates[0]} to {dates[-1]}" if dates else "no dates"
    versions = sorted({one.variant for one in figures})
    about = f"{kept.note['format']}, {span}, versions {', '.join(versions)}; each sign is a date, # measured, . not"
    return Told(
        HistorySource("import", kept.name, about, dates, coverage.of_import(figures, missing)), figures, missing
    )


def read_campaign(campaign: Campaign) -> ReadTargets:
    """What stands in its directory now."""
    records = Records()
    outcomes = account_now(campaign, records).outcomes
    merged = merge_directory(campaign.runs_dir, records)
    return ReadTargets(campaign, cells(campaign.plan, outcomes, merged), merged)


def _tell_campaign(campaign: Campaign) -> Told:
    plan, read = campaign.plan, read_campaign(campaign)
    missing = missing_intervals.of_campaign(plan, read.table, day_of(plan))
    versions = [f"{one.label} (UCX {one.image.ucx_version if one.image else 'not built'})" for one in plan.variants]
    day = str(day_of(plan))
    about = (
        f"{day}, site {plan.site.name}, suite {plan.suite}, {', '.join(versions)}; runs that are ok of those planned"
    )
    source = HistorySource("campaign", plan.campaign, about, [day], coverage.of_campaign(plan, read.table, missing))
    return Told(source, read.figures(), missing)


def _sizes(campaign: Campaign, merged: Merged) -> dict[tuple[str, str], int]:
    """Nominal bytes of each run's workloads."""
    known = {(one.name, one.backend, canonical(one.params).decode()): one.params_id for one in campaign.plan.workloads}
    found: dict[tuple[str, str], int] = {}
    for part in merged.parts:
        most = part.whole().group_by("run", "workload", "backend", "params").agg(pl.col("bytes").max())
        for run, workload, backend, params, size in most.iter_rows():
            if (place := (workload, backend, params)) in known:
                found[run, known[place]] = max(size or 0, found.get((run, known[place]), 0))
    return found


def shipped_issues() -> list[KnownIssue]:
    """The rules that come with gpubench."""
    path = resources.root() / "issues" / "known.toml"
    return load_known_issues(path.read_text(encoding="utf-8"), "issues/known.toml")
