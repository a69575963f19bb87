"""What has results: a campaign, an import, a table of samples, or two of them; and what each says when it is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Protocol

import typer

from gpubench import resources
from gpubench.cli.campaign.display import show_verdicts, write_report
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.campaign.running import account_now
from gpubench.cli.results import imported
from gpubench.cli.results.charts import show_plots, terminal_width, write_images
from gpubench.cli.results.judge import Question, judge_campaign, report_inputs, tables_of
from gpubench.cli.results.open_target import newest, opened, root_of
from gpubench.cli.results.options import Content, FailOn, QuestionOptions
from gpubench.cli.results.sample_table import READERS, read_table
from gpubench.cli.results.side_by_side import side_by_side
from gpubench.cli.results.trend import section_over_time, tell
from gpubench.cli.say import say, say_text
from gpubench.errors import EXIT_INCONCLUSIVE, DataError, UsageError
from gpubench.files import write_atomically
from gpubench.importers.directory import TABLE, ImportedResults
from gpubench.report.provenance import unplanned
from gpubench.report.sections import Section, json_text, markdown_text, text_lines
from gpubench.report.verdicts import verdict_section
from gpubench.spec.records import LINKS_FILE, SAMPLES_FILE
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.table import comparisons_from_frame
from gpubench.stats.verdict import Verdict, exit_code, judge
from gpubench.store.accounting import Accounting
from gpubench.store.campaign import Campaign

if TYPE_CHECKING:
    from gpubench.report.export import Format

Form = Literal["lines", "json", "markdown"]
OWN_TABLES = (TABLE, SAMPLES_FILE, LINKS_FILE)
"""Files of campaigns and imports that would be tables of samples elsewhere."""


@dataclasses.dataclass(frozen=True)
class VerdictAnswer:
    """Verdicts, and what stands beside them; ``document`` is the whole answer as Markdown, where there is more."""

    verdicts: list[Verdict]
    section: Section
    accounting: Accounting | None = None
    document: Callable[[], str] | None = None


@dataclasses.dataclass(frozen=True)
class ReportFiles:
    """What ``report`` draws besides: a page of two targets, charts as files, effects in the terminal."""

    html: Path | None = None
    svg: Path | None = None
    png: Path | None = None
    terminal: bool = False

    def charts(self) -> Iterator[tuple[Format, Path]]:
        """The directories of charts, with their format."""
        if self.svg:
            yield "svg", self.svg
        if self.png:
            yield "png", self.png


class ResultSet(Protocol):
    """Anything that has results. ``cannot`` says of options that it can't heed, why."""

    cannot: ClassVar[Mapping[str, str]]

    def answer(self, question: Question) -> VerdictAnswer:
        """Its verdicts."""

    def section(self, content: Content, question: Question, workload: str | None) -> Section | None:
        """What it has of this content, which isn't verdicts; None: nothing of the kind; raises DataError."""

    def report(self, question: Question, files: ReportFiles) -> None:
        """Print verdicts and write the page."""


def result_set(target: Path | None, other: Path | None, outputs: Path | None) -> ResultSet:
    """What is named, else the newest campaign with results; raises UsageError, DataError."""
    if target is None:
        return CampaignTarget(Campaign.open(newest(outputs, with_results=True)))
    if other is not None:
        if table := next(filter(is_table, (target, other)), None):
            raise UsageError(f"{table} is a table of samples", then="put both sides into one, as two variants")
        return PairTarget(target, other)
    if is_table(target):
        return TableTarget(target)
    kept = opened(target)
    return CampaignTarget(kept) if isinstance(kept, Campaign) else ImportTarget(kept)


def is_table(path: Path) -> bool:
    """Whether it is called as tables are, and is no part of a campaign or an import."""
    return path.suffix.lower() in READERS and not (path.name in OWN_TABLES and root_of(path) != path)


def compare(
    target: Path | None,
    other: Path | None,
    outputs: Path | None,
    asked: QuestionOptions,
    *,
    by: str | None,
    fail_on: FailOn,
    form: Form,
) -> NoReturn:
    """Print the verdicts; ends with their exit code."""
    results = result_set(target, other, outputs)
    answer = results.answer(_question(results, asked, by))
    _show_answer(answer, form)
    code = exit_code(answer.verdicts)
    raise typer.Exit(0 if code == EXIT_INCONCLUSIVE and fail_on is FailOn.REGRESSION else code)


def report(
    target: Path | None,
    other: Path | None,
    outputs: Path | None,
    asked: QuestionOptions,
    *,
    only: Content | None,
    workload: str | None,
    form: Form,
    files: ReportFiles,
) -> None:
    """Print one section, or the verdicts and write the page."""
    results = result_set(target, other, outputs)
    question = _question(results, asked, None)
    if only is Content.VERDICTS or (form == "markdown" and only is None):
        _show_answer(results.answer(question), form)
    elif other is None and question != Question(allow=question.allow):
        raise UsageError(
            "--baseline, --candidate, --margin and --summary are for two targets, or --only verdicts",
            then="name a second target",
        )
    elif only is not None:
        section = results.section(only, question, workload)
        if section is None:
            raise UsageError(f"{target}: {only} isn't known of it", then="name a campaign")
        show_section(section, form)
    else:
        results.report(question, files)


def show_section(section: Section, form: Form) -> None:
    """Print it."""
    if form != "lines":
        say_text(json_text(section) if form == "json" else markdown_text(section))
        return
    for line in text_lines(section):
        say(line)


def _show_answer(answer: VerdictAnswer, form: Form) -> None:
    if form == "markdown" and answer.document:
        say_text(answer.document())
    elif form != "lines":
        show_section(answer.section, form)
    else:
        show_verdicts(answer.verdicts, answer.accounting)
        for note in answer.section.notes:
            say(f"note: {note}")


def _question(results: ResultSet, asked: QuestionOptions, by: str | None) -> Question:
    options = CampaignOptions(margin=asked.margin, summary=asked.summary)
    question = Question(
        options.chosen_margin(),
        asked.baseline,
        asked.candidate,
        tuple(asked.allow or ()),
        None if asked.summary is None else options.chosen_summary(),
        tuple((by or "").replace(",", " ").split()),
    )
    for name, why in results.cannot.items():
        if getattr(question, name):
            raise UsageError(f"--{name}: {why}", then="leave it out")
    return question


class CampaignTarget:
    """A campaign, maybe packed."""

    cannot: ClassVar[Mapping[str, str]] = {
        "by": "the comparisons of a campaign are planned",
        "summary": "a campaign is judged by the number that was planned",
    }

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign

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
        notes = list(unplanned(plan, judged.changes))
        section = verdict_section(plan.campaign, shown, judged.settings, plan.site.layout.arrangement, notes)

        def document() -> str:
            from gpubench.report.markdown import markdown

            return markdown(report_inputs(judged))

        whole = question.baseline is None and question.candidate is None
        return VerdictAnswer(shown, section, judged.accounting, document if whole else None)

    def section(self, content: Content, _question: Question, workload: str | None) -> Section | None:
        """Any."""
        if content is Content.SCALING:
            return self._scaling()
        if content is Content.LINKS:
            return self._links(workload)
        return section_over_time([tell(self.campaign)], content)

    def _scaling(self) -> Section:
        from gpubench.merge.curves import curves, scheduler_shares
        from gpubench.report.scaling import scaling_section

        judged = judge_campaign(self.campaign)
        plan = self.campaign.plan
        found = curves(plan, judged.cells)
        if not any(one.logs for curve in found for one in curve.measured):
            raise DataError(
                f"{self.campaign.directory} has no run that is ok", then="gpubench status says what became of them"
            )
        notes = ['one size only: plan several, as --nodes "1 2 4" or --workers "1 2 4"'] * (len(plan.places) == 1)
        return scaling_section(plan.campaign, found, scheduler_shares(plan, judged.cells), notes)

    def _links(self, workload: str | None) -> Section:
        from gpubench.report.links import links_section

        tables = tables_of(self.campaign, account_now(self.campaign).outcomes)
        tables = [table for table in tables if workload in (None, table.workload.name)]
        if not tables:
            whose = f" of {workload}" if workload else ""
            raise DataError(
                f"{self.campaign.place}: no run that is ok recorded a link{whose} between workers that it names",
                then="a workload that moves something between workers: suite fabric, merge, transpose-sum",
            )
        return links_section(self.campaign.plan.campaign, tables)

    def report(self, question: Question, files: ReportFiles) -> None:
        """``report.html`` and ``report.md`` into its directory."""
        from gpubench.merge.curves import curves
        from gpubench.report.export import images
        from gpubench.report.plots import effect_plot, efficiency_plot

        _refuse_page_file(files)
        judged = judge_campaign(self.campaign, question)
        show_verdicts(judged.verdicts, judged.accounting)
        inputs = write_report(judged)
        for form, directory in files.charts():
            write_images(images(inputs, form), directory, f"no run of {inputs.plan.campaign} has a sample")
        if files.terminal:
            width = terminal_width()
            efficiency = efficiency_plot(curves(inputs.plan, inputs.cells), width)
            show_plots([effect_plot(inputs.verdicts, inputs.settings.margin, width), efficiency])


class ImportTarget:
    """Results of another tool, maybe packed."""

    cannot: ClassVar[Mapping[str, str]] = {
        "allow": "an import says nothing of its environment",
        "by": "an import says itself what its cells are",
        "summary": "an import is judged by the mean of a date",
    }

    def __init__(self, found: ImportedResults) -> None:
        self.found = found

    def answer(self, question: Question) -> VerdictAnswer:
        """Of the whole family against one version, dates in place of blocks."""
        verdicts, settings = imported.judged(self.found, question.baseline, question.margin)
        shown = [one for one in verdicts if question.candidate in (None, one.candidate)]
        if not shown:
            there = sorted({one.candidate for one in verdicts})
            raise UsageError(
                f"no variant '{question.candidate}' beside the baseline", then=f"there are {', '.join(there)}"
            )
        section = verdict_section(self.found.name, shown, settings, notes=list(imported.cautions(self.found)))

        def document() -> str:
            from gpubench.report.imported_page import markdown

            return markdown(imported.inputs_of(self.found))

        return VerdictAnswer(shown, section, document=document if question == Question() else None)

    def section(self, content: Content, _question: Question, _workload: str | None) -> Section | None:
        """Any but links."""
        if content is Content.LINKS:
            raise UsageError(
                f"{self.found.place} is an import: it has no runs and links of its own, which this asks for",
                then="name a campaign",
            )
        if content is not Content.SCALING:
            return section_over_time([tell(self.found)], content)
        from gpubench.importers import sizes
        from gpubench.report.scaling import imported_scaling_section

        curves = sizes.curves(self.found.table)
        if not curves:
            raise DataError(
                f"{self.found.place}: the source recorded no number of workers", then="there is nothing to scale by"
            )
        return imported_scaling_section(self.found.name, curves)

    def report(self, _question: Question, files: ReportFiles) -> None:
        """``report.html`` and ``report.md``: verdicts, change points, charts over dates, what is missing."""
        from gpubench.report.export import rendered
        from gpubench.report.imported_page import drawings, html, markdown
        from gpubench.report.plots import effect_plot

        _refuse_page_file(files)
        inputs = imported.inputs_of(self.found)
        show_verdicts(inputs.verdicts)
        for name, data in (("report.html", html(inputs)), ("report.md", markdown(inputs))):
            write_atomically(self.found.derived(name), data)
        say(f"report: {self.found.derived('report.html')}")
        for form, directory in files.charts():
            drawn = rendered(drawings(inputs), inputs.templates, form)
            write_images(drawn, directory, f"no figure of {self.found.name} has a date")
        if files.terminal:
            show_plots([effect_plot(inputs.verdicts, inputs.settings.margin, terminal_width())])


class TableTarget:
    """Anybody's table of samples."""

    cannot: ClassVar[Mapping[str, str]] = {"allow": "a table says nothing of its environment"}

    def __init__(self, path: Path) -> None:
        self.path = path

    def answer(self, question: Question) -> VerdictAnswer:
        """Of every cell of the table."""
        if question.baseline is None or question.candidate is None:
            raise UsageError(f"{self.path} needs --baseline and --candidate", then="name two of its variants")
        settings = question.settings(VerdictSettings())
        frame = read_table(self.path)
        comparisons = comparisons_from_frame(frame, question.baseline, question.candidate, list(question.by))
        verdicts: list[Verdict] = judge(comparisons, settings)
        return VerdictAnswer(verdicts, verdict_section(str(self.path), verdicts, settings))

    def section(self, _content: Content, _question: Question, _workload: str | None) -> Section | None:
        """None."""
        return None

    def report(self, _question: Question, _files: ReportFiles) -> None:
        """Raises UsageError."""
        raise UsageError(
            f"{self.path} is a table of samples, of which no page is made",
            then=f"gpubench compare {self.path} --baseline A --candidate B",
        )


class PairTarget:
    """Two campaigns or imports: the second against the first."""

    cannot: ClassVar[Mapping[str, str]] = {
        "allow": "two targets are compared as they stand",
        "by": "two targets say themselves what their cells are",
    }

    def __init__(self, first: Path, second: Path) -> None:
        self.first, self.second = first, second

    def answer(self, question: Question) -> VerdictAnswer:
        """Of every cell that both have, unpaired."""
        shown = side_by_side(self.first, self.second, question)
        name = f"{shown.second.label} against {shown.first.label}"
        return VerdictAnswer(
            list(shown.verdicts), verdict_section(name, shown.verdicts, shown.settings, notes=shown.notes)
        )

    def section(self, content: Content, question: Question, _workload: str | None) -> Section | None:
        """Both curves of every workload."""
        from gpubench.report.sides import sides_section

        if content is not Content.SCALING:
            return None
        return sides_section(side_by_side(self.first, self.second, question))

    def report(self, question: Question, files: ReportFiles) -> None:
        """One page with both curves of every workload."""
        from gpubench.report.plots import effect_plot
        from gpubench.report.sides import sides_section
        from gpubench.report.sides_page import html

        if files.svg or files.png:
            raise UsageError("--svg and --png are for one target", then="leave them out")
        shown = side_by_side(self.first, self.second, question)
        first, second = (root_of(path).resolve().name for path in (self.first, self.second))
        page = files.html or Path(f"{second}-against-{first}.html")
        write_atomically(page, html(shown, resources.texts("templates")))
        show_section(sides_section(shown), "lines")
        say(f"page: {page}")
        if files.terminal:
            show_plots([effect_plot(shown.verdicts, shown.settings.margin, terminal_width())])


def _refuse_page_file(files: ReportFiles) -> None:
    if files.html:
        raise UsageError("--html is for two targets: the page of one stands beside it", then="leave it out")
