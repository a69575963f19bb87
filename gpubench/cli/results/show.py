"""``gpubench compare`` and ``gpubench report``: print, draw and write what a result set provides."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from gpubench import resources
from gpubench.cli.campaign.display import show_next_steps, show_verdicts
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.results.options import CompareOptions, Content, Form, QuestionOptions, ReportOptions
from gpubench.cli.results.result_sets import ResultSet, TableResults, VerdictAnswer, result_set
from gpubench.cli.say import say, say_text
from gpubench.errors import UsageError
from gpubench.files import write_atomically
from gpubench.report.sections import Section, json_text, markdown_text, text_lines
from gpubench.stats.question import Question
from gpubench.stats.verdict import exit_code

if TYPE_CHECKING:
    from gpubench.report.charts import Format
    from gpubench.report.page import Page

PIPED_WIDTH = 80


def compare(target: Path | None, other: Path | None, outputs: Path | None, asked: CompareOptions) -> NoReturn:
    """Print the verdicts; ends with their exit code."""
    if asked.samples is not None and target is not None:
        raise UsageError("--samples and TARGET are two names of the same thing", then="leave --samples out")
    form = asked.form
    results = result_set(target, other, outputs) if asked.samples is None else TableResults(asked.samples)
    if isinstance(results, TableResults):
        results.cell, results.columns = (asked.by or "").replace(",", " ").split(), asked.columns
    elif asked.by or asked.columns:
        option = "--by" if asked.by else "--columns"
        raise UsageError(
            f"{option} is for tables of samples: other targets define their own cells", then="leave it out"
        )
    answer = results.answer(_question(results, asked))
    _show_answer(answer, form)
    raise typer.Exit(exit_code(answer.verdicts, asked.fail_on))


def report(target: Path | None, other: Path | None, outputs: Path | None, asked: ReportOptions) -> None:
    """Print one section, or the verdicts and write the page."""
    _refuse_what_excludes(asked, two=other is not None)
    form = asked.form
    results = result_set(target, other, outputs)
    question = _question(results, asked)
    if asked.only is Content.VERDICTS or (form == "markdown" and asked.only is None):
        _show_answer(results.answer(question), form)
    elif other is None and question != Question(allow=question.allow):
        raise UsageError(
            "--baseline, --candidate, --margin and --summary are for two targets, or --only verdicts",
            then="name a second target",
        )
    elif asked.only is not None:
        show_section(results.section(asked.only, question, asked.workload), form)
    else:
        page = results.write_page(question, asked.html)
        write_images(page, {"svg": asked.svg, "png": asked.png})
        if asked.terminal:
            import rich.console

            width = rich.console.Console().width if sys.stdout.isatty() else PIPED_WIDTH
            for line in (line for plot in page.plots(width) if (lines := list(plot)) for line in ("", *lines)):
                say(line)
        show_next_steps(page.steps)


def _refuse_what_excludes(asked: ReportOptions, *, two: bool) -> None:
    draws = asked.html or asked.svg or asked.png or asked.terminal
    for wrong, what, then in (
        (
            not two and asked.html,
            "--html is for two targets: the page of one target is written beside it",
            "leave it out",
        ),
        (two and (asked.svg or asked.png), "--svg and --png are for one target", "leave them out"),
        (asked.as_json and not asked.only, "--json prints one section", "name it with --only, or: gpubench compare"),
        (asked.workload and asked.only is not Content.LINKS, "--workload is for --only links", "leave it out"),
        (
            (asked.only or asked.as_markdown) and draws,
            "--only and --markdown print, --html, --svg, --png and --terminal draw",
            "choose one",
        ),
    ):
        if wrong:
            raise UsageError(what, then=then)


def write_images(page: Page, directories: dict[Format, Path | None]) -> None:
    """Charts into the directory of each format, which is made where there is none; other files there stay.

    Raises:
        MissingToolError: it can't be written.
    """
    for form, directory in directories.items():
        if directory is not None:
            from gpubench.report.charts import images

            names = []
            for name, content in images(page.charts(), resources.texts("templates"), form):
                write_atomically(directory / name, content)
                names.append(name)
            say(f"charts: {len(names)} in {directory}" if names else f"charts: none, {page.why_no_chart}")


def show_section(section: Section, form: Form) -> None:
    """Print it."""
    if form == "lines":
        for line in text_lines(section):
            say(line)
    else:
        say_text(json_text(section) if form == "json" else markdown_text(section))


def _show_answer(answer: VerdictAnswer, form: Form) -> None:
    if form == "markdown" and answer.document:
        say_text(answer.document())
    elif form != "lines":
        show_section(answer.section, form)
    else:
        show_verdicts(answer.verdicts, answer.accounting, answer.seconds)
        for note in answer.section.notes:
            say(f"note: {note}")


def _question(results: ResultSet, asked: QuestionOptions) -> Question:
    words = CampaignOptions(margin=asked.margin, summary=asked.summary)
    summary = None if asked.summary is None else words.chosen_summary()
    allow = tuple(asked.allow or ())
    question = Question(words.chosen_margin(), asked.baseline, asked.candidate, allow, summary)
    for name, why in results.cannot.items():
        if getattr(question, name) != getattr(Question(), name):
            raise UsageError(f"--{name}: {why}", then="leave it out")
    return question
