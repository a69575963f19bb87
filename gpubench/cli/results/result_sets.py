"""Result sets: a campaign, an import, a table of samples, or two of them; and the content that each provides.

A table of samples is CSV, JSONL or Parquet.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from gpubench.cli.campaign.display import show_verdicts, write_report
from gpubench.cli.campaign.running import account_now
from gpubench.cli.results.judge import judge_campaign, report_inputs, tables_of
from gpubench.cli.results.open_target import all_opened, newest, opened, root_of
from gpubench.cli.results.options import Content
from gpubench.cli.say import warn
from gpubench.errors import DataError, UsageError
from gpubench.merge.family import Cell, cells
from gpubench.merge.table import Merged, merge_directory
from gpubench.merge.table_files import READERS, as_samples, read_table
from gpubench.model.plan import Plan
from gpubench.report.inputs import Seconds, seconds
from gpubench.report.provenance import cautions
from gpubench.report.sections import Section
from gpubench.report.verdicts import verdict_section
from gpubench.spec.plain import canonical
from gpubench.spec.records import LINKS_FILE, SAMPLES_FILE
from gpubench.stats.question import Question
from gpubench.stats.settings import Summary
from gpubench.stats.table import comparisons_from_frame, require_columns
from gpubench.stats.verdict import Verdict, judge
from gpubench.store.accounting import Accounting
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records, read_provenance

if TYPE_CHECKING:
    from gpubench.history.observed import Observed
    from gpubench.history.sides import SideCell
    from gpubench.importers.directory import ImportedResults
    from gpubench.report.history import HistorySource
    from gpubench.report.page import Page

OWN_TABLES = ("results.parquet", SAMPLES_FILE, LINKS_FILE)
"""Files of campaigns and imports that would be tables of samples elsewhere."""


@dataclasses.dataclass(frozen=True)
class VerdictAnswer:
    """Verdicts, both sides of each in seconds, and the notes on them; ``document`` is all of it as Markdown."""

    verdicts: Sequence[Verdict]
    section: Section
    seconds: Sequence[Seconds] = ()
    accounting: Accounting | None = None
    document: Callable[[], str] | None = None


class ResultSet:
    """Anything that has results. ``cannot`` gives the reason for each option that it doesn't support."""

    cannot: ClassVar[Mapping[str, str]] = {}
    place: Path

    def answer(self, question: Question) -> VerdictAnswer:
        """Its verdicts."""
        raise NotImplementedError

    def section(self, content: Content, _question: Question, _workload: str | None) -> Section:
        """A section of this content, other than verdicts; raises UsageError, DataError if it has none."""
        raise UsageError(f"{self.place}: it has no {content}", then="name a campaign")

    def write_page(self, _question: Question, _path: Path | None) -> Page:
        """Print verdicts and write the page; its steps are what can be typed next."""
        raise UsageError(
            f"{self.place} is a table of samples, for which there is no page",
            then=f"gpubench compare {self.place}",
        )


class OneSide(ResultSet):
    """A campaign or an import: it can be compared with another one, and has a history."""

    kind: ClassVar[str]
    name: str
    variants: Sequence[str]
    plan: Plan | None = None
    caution: str = ""

    def history(self) -> HistorySource:
        """What it adds to a history."""
        raise NotImplementedError

    def side_cells(self, variant: str, summary: Summary) -> list[SideCell]:
        """Its cells under a variant."""
        raise NotImplementedError

    def circumstances(self, _variant: str) -> tuple[Mapping[str, str], Observed | None] | None:
        """Facts about the site and the first figure of a variant; None for facts that aren't recorded."""
        return None

    def section(self, content: Content, _question: Question, _workload: str | None) -> Section:
        """What it has of coverage and changes."""
        from gpubench.cli.results.trend import section_over_time

        return section_over_time([self.history()], content)


def result_set(target: Path | None, other: Path | None, outputs: Path | None) -> ResultSet:
    """What is named, else the newest campaign with results; raises UsageError, DataError."""
    if target is None:
        return CampaignResults(Campaign.open(newest(outputs, with_results=True)))
    if other is not None:
        from gpubench.cli.results.two_results import TwoResults

        return TwoResults(target, other)
    return TableResults(target) if _is_table(target) else one_side(target)


def one_side(path: Path) -> OneSide:
    """The named campaign or import; raises UsageError, DataError."""
    if _is_table(path):
        raise UsageError(f"{path} is a table of samples", then="put both sides into one, as two variants")
    return _of(opened(path))


def every_side(paths: Sequence[Path]) -> Iterator[OneSide]:
    """The campaigns and imports that are named or are in a named directory; raises UsageError if there are none."""
    return map(_of, all_opened(paths))


def _of(kept: Campaign | ImportedResults) -> OneSide:
    if isinstance(kept, Campaign):
        return CampaignResults(kept)
    from gpubench.cli.results.of_imports import ImportResults

    return ImportResults(kept)


def _is_table(path: Path) -> bool:
    """Whether it has the name of a table, and is no file of a campaign or an import."""
    return path.suffix.lower() in READERS and not (path.name in OWN_TABLES and root_of(path) != path)


class CampaignResults(OneSide):
    """A campaign, maybe packed."""

    kind = "campaign"
    cannot: ClassVar[Mapping[str, str]] = {"summary": "a campaign is judged by the summary that was planned"}

    def __init__(self, campaign: Campaign) -> None:
        self.campaign, self.place, self.name = campaign, campaign.place, campaign.plan.campaign
        self.variants = [variant.label for variant in campaign.plan.variants]
        self.plan = campaign.plan

    def answer(self, question: Question) -> VerdictAnswer:
        """Of the whole family, or the pair that is asked for; writes ``results.parquet`` and ``verdicts.json``."""
        judged = judge_campaign(self.campaign, question)
        plan = judged.campaign.plan
        base = question.baseline or plan.baseline
        shown = [
            one
            for one in judged.verdicts
            if one.baseline == base and (question.candidate is None or one.candidate == question.candidate)
        ]
        both = seconds(judged.comparisons, shown, judged.settings.summary)
        notes = cautions(plan, judged.changes, judged.accounting.outcomes)
        section = verdict_section(
            self.name, shown, judged.settings, both, arrangement=plan.site.layout.arrangement, notes=notes
        )

        def document() -> str:
            from gpubench.report.campaign_page import campaign_page
            from gpubench.report.page import markdown

            return markdown(campaign_page(report_inputs(judged)))

        planned = question.baseline is None and question.candidate is None
        return VerdictAnswer(shown, section, both, judged.accounting, document if planned else None)

    def section(self, content: Content, question: Question, workload: str | None) -> Section:
        """Any."""
        if content is Content.SCALING:
            return self._scaling()
        if content is Content.RUNS:
            from gpubench.report.runs import run_list_section

            return run_list_section(self.name, account_now(self.campaign).outcomes)
        return self._links(workload) if content is Content.LINKS else super().section(content, question, workload)

    def _scaling(self) -> Section:
        from gpubench.merge.curves import curves
        from gpubench.report.scaling import scaling_section

        judged = judge_campaign(self.campaign)
        plan = self.campaign.plan
        found = curves(plan, judged.cells)
        if not any(one.logs for curve in found for one in curve.measured):
            raise DataError(f"{self.place} has no run that is ok", then="gpubench status shows how the runs ended")
        remarks = ['there is only one size: plan several, like --nodes "1 2 4" or --workers "1 2 4"'] * (
            len(plan.places) == 1
        )
        return scaling_section(plan.campaign, found, remarks)

    def _links(self, workload: str | None) -> Section:
        from gpubench.report.links import links_section

        tables = tables_of(self.campaign, account_now(self.campaign).outcomes)
        tables = [table for table in tables if workload in (None, table.workload.name)]
        if not tables:
            whose = f" of {workload}" if workload else ""
            raise DataError(
                f"{self.place}: no run that is ok recorded a link{whose} between workers that it names",
                then="a workload that moves something between workers: suite fabric, merge, transpose-sum",
            )
        return links_section(self.name, tables)

    def write_page(self, question: Question, _path: Path | None) -> Page:
        """``report.html`` and ``report.md`` into its directory, or beside its pack."""
        judged = judge_campaign(self.campaign, question, for_page=True)
        inputs = report_inputs(judged)
        show_verdicts(judged.verdicts, judged.accounting, inputs.seconds)
        page = write_report(judged, inputs)
        return page if self.campaign.pack is None else dataclasses.replace(page, steps=())

    @functools.cached_property
    def _read(self) -> tuple[list[Cell], Merged]:
        """Its cells and the merged samples, in their current state."""
        records = Records()
        outcomes = account_now(self.campaign, records).outcomes
        merged = merge_directory(self.campaign.runs_dir, records)
        return cells(self.campaign.plan, outcomes, merged), merged

    def history(self) -> HistorySource:
        """Its one day."""
        from gpubench.history import coverage
        from gpubench.history.observed import day_of
        from gpubench.report.history import HistorySource

        plan, table = self.campaign.plan, self._read[0]
        missing = coverage.gaps_of_campaign(plan, table, day_of(plan))
        versions = [f"{one.label} (UCX {one.image.ucx_version if one.image else 'not built'})" for one in plan.variants]
        day = str(day_of(plan))
        about = (
            f"{day}, site {plan.site.name}, suite {plan.suite}, {', '.join(versions)}; runs that are ok of those "
            "planned"
        )
        lines = coverage.of_campaign(plan, table, missing)
        return HistorySource(self.kind, self.name, about, [day], lines, self._figures(), missing)

    def _figures(self) -> list[Observed]:
        from gpubench.history import observed

        table, merged = self._read
        found = {one.outcome.run.run: one.outcome.directory for one in table}
        provenance = {run: read_provenance(directory) for run, directory in found.items() if directory}
        nominal = _nominal_bytes(self.campaign, merged)
        return list(observed.of_campaign(self.campaign.plan, table, provenance, self.campaign.manifests(), nominal))

    def side_cells(self, variant: str, summary: Summary) -> list[SideCell]:
        """Of runs that are ok."""
        from gpubench.history import sides

        return sides.of_campaign(self.campaign.plan, self._read[0], variant, summary)

    def circumstances(self, variant: str) -> tuple[Mapping[str, str], Observed | None] | None:
        """What its plan and its runs recorded."""
        site = self.campaign.plan.site
        fields = {name: str(getattr(site, name)) for name in ("name", "scheduler", "launcher", "runtime")}
        return fields, next((figure for figure in self._figures() if figure.variant == variant), None)


def _nominal_bytes(campaign: Campaign, merged: Merged) -> dict[tuple[str, str], int]:
    """Of each run's workloads, by run and ``params_id``."""
    known = {(one.name, one.backend, canonical(one.params).decode()): one.params_id for one in campaign.plan.workloads}
    found: dict[tuple[str, str], int] = {}
    for some in merged.slices():
        most = some.group_by("run", "workload", "backend", "params").agg(pl.col("bytes").max())
        for run, workload, backend, params, size in most.iter_rows():
            if (place := (workload, backend, params)) in known:
                found[run, known[place]] = max(size or 0, found.get((run, known[place]), 0))
    return found


class TableResults(ResultSet):
    """A user's table of samples."""

    cannot: ClassVar[Mapping[str, str]] = {"allow": "a table doesn't record its environment"}

    def __init__(self, path: Path) -> None:
        self.place = path
        self.cell: Sequence[str] = ()  # columns that identify a cell besides
        self.columns: str | None = None

    def answer(self, question: Question) -> VerdictAnswer:
        """Of every cell of the table."""
        settings = question.settings()
        table, note = read_table(self.place, self.columns)
        if note:
            warn(f"{self.place}: {note}")
        frame = as_samples(table, self.place, self.columns)
        comparisons = comparisons_from_frame(frame, *self._pair(question, frame), list(self.cell))
        verdicts = judge(comparisons, settings)
        both = seconds(comparisons, verdicts, settings.summary)
        margin = f"the margin is ±{settings.margin.percent}, the default, since a table says none: --margin sets it"
        notes = [margin] if question.margin is None else []
        section = verdict_section(str(self.place), verdicts, settings, both, notes=notes)
        return VerdictAnswer(verdicts, section, both)

    def _pair(self, question: Question, frame: pl.DataFrame) -> tuple[str, str]:
        """The variants that are named, else the only two of the table; the first row's is the baseline."""
        if question.baseline is not None and question.candidate is not None:
            return question.baseline, question.candidate
        if "variant" not in frame.columns:
            require_columns(frame, self.cell)
        there = frame["variant"].drop_nulls().cast(pl.String).unique(maintain_order=True).to_list()
        named = question.baseline or question.candidate
        if len(there) != 2 or named not in (None, *there):
            raise UsageError(
                f"{self.place} has the variants {', '.join(there)}",
                then="name two: --baseline A --candidate B",
            )
        baseline = question.baseline or next(one for one in there if one != question.candidate)
        return baseline, next(one for one in there if one != baseline)
