"""``gpubench trend``: results of campaigns and imports over time."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import rich.progress

from gpubench import resources
from gpubench.cli.campaign.running import account_now
from gpubench.cli.results.charts import write_images
from gpubench.cli.results.open_target import all_opened
from gpubench.cli.results.options import TrendContent
from gpubench.cli.say import say, say_text, warn
from gpubench.cli.terminal import Terminal
from gpubench.files import write_atomically
from gpubench.history import coverage, missing_intervals, observed
from gpubench.history.changes import find
from gpubench.history.missing_intervals import Gap
from gpubench.history.observed import Observed, day_of
from gpubench.importers.directory import ImportedResults
from gpubench.importers.pairing import points
from gpubench.merge.directories import merge_directory
from gpubench.merge.family import Cell, cells
from gpubench.merge.table import Merged
from gpubench.model.known_issue import load_known_issues
from gpubench.report.history import HistorySource, changes_section, coverage_section, trend_section
from gpubench.report.sections import Section, json_text, text_lines
from gpubench.spec.plain import canonical
from gpubench.stats.settings import VerdictSettings
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records, read_provenance

if TYPE_CHECKING:
    from gpubench.report.export import Format


@dataclasses.dataclass(frozen=True)
class Told:
    """What a campaign or an import adds to a history."""

    source: HistorySource
    figures: list[Observed]
    missing: list[Gap]


@dataclasses.dataclass(frozen=True)
class ReadCampaign:
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


def show_trend(
    directories: Sequence[Path],
    only: TrendContent | None,
    *,
    as_json: bool,
    page: Path | None,
    svg: Path | None,
    png: Path | None,
) -> None:
    """Print what was measured when and where it changed, or write the page; raises UsageError where nothing is found.

    Args:
        directories: campaigns, imports, or directories that hold some.
        only: one of the two.
        as_json: one object instead of lines.
        page: where the page over time goes.
        svg, png: where its charts go as files.
    """
    told = [tell(one) for one in all_opened(directories)]
    if page or svg or png:
        _draw(told, page, {"svg": svg, "png": png})
        return
    section = section_over_time(told, only)
    if as_json:
        say_text(json_text(section))
        return
    for line in text_lines(section):
        say(line)


def section_over_time(told: Sequence[Told], only: str | None) -> Section:
    """``coverage`` or ``changes``, or both."""
    sources = [one.source for one in told]
    if only == TrendContent.COVERAGE:
        return coverage_section(sources)
    figures = [figure for one in told for figure in one.figures]
    if not figures:
        warn("no figure has a date and a version, so there is no history to search")
    with _search_bar() as searching:
        series = find(figures, VerdictSettings().seed, searching)
    return changes_section(series) if only == TrendContent.CHANGES else trend_section(sources, series)


@contextlib.contextmanager
def _search_bar() -> Iterator[Callable[[int, int], None]]:
    """What is to be told of series searched, and of how many; on a terminal it shows a bar until the end."""
    if not sys.stdout.isatty():
        yield lambda _done, _all: None
        return
    with rich.progress.Progress(console=Terminal(), transient=True) as progress:
        task = progress.add_task("series searched for changes", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _draw(told: Sequence[Told], page: Path | None, wished: dict[Format, Path | None]) -> None:
    from gpubench.report.export import rendered
    from gpubench.report.history_page import HistoryInputs, drawings, html

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
    for form, target in wished.items():
        if target is not None:
            write_images(rendered(drawings(inputs), inputs.templates, form), target, "no figure has a date")


def tell(kept: Campaign | ImportedResults) -> Told:
    """The history that it holds; rules that come with gpubench may explain what is missing from an import."""
    return _tell_campaign(kept) if isinstance(kept, Campaign) else _tell_import(kept)


def _tell_import(kept: ImportedResults) -> Told:
    figures = list(observed.of_import(kept.name, points(kept.table), kept.note["documents"]))
    issues = resources.root() / "issues" / "known.toml"
    rules = load_known_issues(issues.read_text(encoding="utf-8"), "issues/known.toml")
    missing = missing_intervals.of_import(figures, rules)
    dates = sorted({str(one.date) for one in figures})
    span = f"{len(dates)} dates, {dates[0]} to {dates[-1]}" if dates else "no dates"
    versions = sorted({one.variant for one in figures})
    about = f"{kept.note['format']}, {span}, versions {', '.join(versions)}; each sign is a date, # measured, . not"
    return Told(
        HistorySource("import", kept.name, about, dates, coverage.of_import(figures, missing)), figures, missing
    )


def read_campaign(campaign: Campaign) -> ReadCampaign:
    """What stands in its directory now."""
    records = Records()
    outcomes = account_now(campaign, records).outcomes
    merged = merge_directory(campaign.runs_dir, records)
    return ReadCampaign(campaign, cells(campaign.plan, outcomes, merged), merged)


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
