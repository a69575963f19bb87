"""Verdicts, the report and what to type next, for people."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpubench.campaign.completeness import require_complete
from gpubench.cli.say import say, say_lines, say_text
from gpubench.store.campaign import Campaign

if TYPE_CHECKING:
    from gpubench.cli.results_options import Form, ReportOptions, TrendOptions
    from gpubench.report.answer import VerdictAnswer
    from gpubench.report.next_steps import NextStep
    from gpubench.report.page import Page
    from gpubench.report.sections import Section
    from gpubench.results.changes import Series
    from gpubench.results.history import ResultHistory
    from gpubench.results.importers.directory import ImportedResults
    from gpubench.results.judged_campaign import JudgedCampaign
    from gpubench.results.results import Results
    from gpubench.stats.question import Question
    from gpubench.stats.settings import FailOn
    from gpubench.stats.verdict import Verdict


def show_answer(answer: VerdictAnswer, form: Form = "lines") -> None:
    """Print the verdicts and the notes on them.

    For people it is the answer in a sentence, then a line per verdict; on a terminal that is wide enough, a table in
    colour.
    """
    if form == "markdown" and answer.document:
        say_text(answer.document())
        return
    if form != "lines":
        show_section(answer.section, form)
        return
    from gpubench.report.answer import answer as sentences
    from gpubench.report.verdicts import verdict_lines

    if answer.compared:
        say(answer.compared)
    if len(answer.verdicts) != 1:
        say_lines(sentences(answer.verdicts, answer.settings))
    if not (sys.stdout.isatty() and _show_table(answer.verdicts)):
        say_lines(verdict_lines(answer.verdicts))
    if answer.runs:
        say(f"runs: {answer.runs}")
    say_lines(f"note: {note}" for note in answer.section.notes)


def _show_table(verdicts: Sequence[Verdict]) -> bool:
    """Whether the terminal was wide enough for the table."""
    from gpubench.cli.terminal import Terminal
    from gpubench.report.verdicts import NARROWEST, wide_table

    console = Terminal()
    wide = console.width >= NARROWEST
    if wide:
        console.print(wide_table(verdicts))
    return wide


def show_next_steps(steps: Sequence[NextStep]) -> None:
    """Print commands to type next, each with its cost and its benefit."""
    if not steps:
        return
    say("")
    width = max(len(step.command) for step in steps)
    for step in steps:
        say(f"{step.command:{width}}   # {step.why}" if step.command else step.why)


def show_report(campaign: Campaign, judged: JudgedCampaign) -> Page:
    """Write the campaign's page, and print where it is."""
    from gpubench.report.writing import write_campaign_page

    page = write_campaign_page(campaign, judged)
    say(f"report: {campaign.report}")
    say(f"samples: {campaign.results}")
    return page


def show_import(kept: ImportedResults) -> Page:
    """Write the page of an import, and print its verdicts and where it is."""
    from gpubench.report.writing import page_of_import, write_page
    from gpubench.results.importers.directory import PAGES

    page, answer = page_of_import(kept, search_bar)
    if answer:
        show_answer(answer)
    path, summary = (kept.directory / name for name in PAGES)
    write_page(page, path, summary)
    say(f"report: {path}")
    return page


def show_sides(sides: Results, question: Question, path: Path) -> Page:
    """Write one page with both curves of every workload, and print its verdicts."""
    from gpubench.report.contents import verdict_answer
    from gpubench.report.other_pages import sides_page
    from gpubench.report.writing import write_page
    from gpubench.results.curves import curves

    answer = verdict_answer(sides, question)
    page = sides_page(sides, answer, curves(sides))
    show_answer(answer)
    write_page(page, path)
    say(f"page: {path}")
    return page


def show_trend_page(sources: Sequence[ResultHistory], series: Sequence[Series], options: TrendOptions) -> None:
    """Write the page of a history, its charts, or both."""
    from gpubench.report.other_pages import trend_page
    from gpubench.report.writing import write_page

    page = trend_page(sources, series)
    if options.html:
        write_page(page, options.html)
        say(f"page: {options.html}")
    show_charts(page, options.svg)


def finish_report(page: Page, options: ReportOptions) -> None:
    """Charts as files, and what can be typed next."""
    show_charts(page, options.svg)
    show_next_steps(page.steps)


def show_charts(page: Page, directory: Path | None) -> None:
    """Write the charts into a directory if there is one, and print how many."""
    from gpubench.report.writing import write_charts

    if directory is not None:
        count = write_charts(page, directory)
        say(f"charts: {count} in {directory}" if count else f"charts: none, {page.why_no_chart}")


def show_section(section: Section, form: Form) -> None:
    from gpubench.report.sections import json_text, markdown_text, text_lines

    if form == "lines":
        say_lines(text_lines(section))
    else:
        say_text(json_text(section) if form == "json" else markdown_text(section))


@contextlib.contextmanager
def search_bar() -> Iterator[Callable[[int, int], None]]:
    """A callback for the number of series searched so far, and of all; on a terminal it shows a bar."""
    from gpubench.results.changes import nobody

    if not sys.stdout.isatty():
        yield nobody
        return
    import rich.progress

    from gpubench.cli.terminal import Terminal

    with rich.progress.Progress(console=Terminal(), transient=True) as progress:
        task = progress.add_task("series searched for changes", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def conclude(campaign: Campaign, fail_on: FailOn | None) -> None:
    """Judge a campaign, show the verdicts, write its report.

    Raises:
        IncompleteError: a planned run has not ended.
        typer.Exit: a verdict is at least as bad as ``fail_on``.
    """
    # Late: scipy takes a second, which belongs behind the measurements.
    from gpubench.report.contents import judged_answer
    from gpubench.results.judging import judge_campaign
    from gpubench.stats.question import Question
    from gpubench.stats.verdict import exit_code

    judged = judge_campaign(campaign)
    say("")
    show_answer(judged_answer(judged, Question()))
    page = show_report(campaign, judged)
    show_next_steps(page.steps)
    require_complete(campaign, judged.accounting)
    if code := exit_code(judged.verdicts, fail_on):
        say(f"--fail-on {fail_on}: exit {code}")
        raise typer.Exit(code)
