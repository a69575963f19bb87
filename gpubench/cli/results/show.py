"""``gpubench compare`` and ``gpubench report``: what a result set says is printed, drawn and written."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import rich.console
import typer

from gpubench.cli.campaign.display import show_verdicts
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.results.judge import Question
from gpubench.cli.results.options import Content, FailOn, QuestionOptions
from gpubench.cli.results.result_sets import ResultSet, VerdictAnswer, result_set
from gpubench.cli.say import say, say_text
from gpubench.errors import EXIT_INCONCLUSIVE, UsageError
from gpubench.files import write_atomically
from gpubench.report.sections import Section, json_text, markdown_text, text_lines
from gpubench.stats.verdict import exit_code

if TYPE_CHECKING:
    from gpubench.report.export import Format

PIPED_WIDTH = 80
Form = Literal["lines", "json", "markdown"]


@dataclasses.dataclass(frozen=True)
class ReportFiles:
    """What ``report`` draws besides: the page of two targets, charts as files, effects in the terminal."""

    html: Path | None = None
    svg: Path | None = None
    png: Path | None = None
    terminal: bool = False


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
    if other is None and files.html:
        raise UsageError("--html is for two targets: the page of one stands beside it", then="leave it out")
    if other is not None and (files.svg or files.png):
        raise UsageError("--svg and --png are for one target", then="leave them out")
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
        show_section(results.section(only, question, workload), form)
    else:
        drawn = results.write_page(question, files.html)
        write_images(drawn.charts, {"svg": files.svg, "png": files.png}, drawn.why_none)
        if files.terminal:
            width = rich.console.Console().width if sys.stdout.isatty() else PIPED_WIDTH
            for line in (line for plot in drawn.plots(width) if (lines := list(plot)) for line in ("", *lines)):
                say(line)


def write_images(
    drawn: Callable[[Format], Iterable[tuple[str, bytes]]], directories: dict[Format, Path | None], why_none: str
) -> None:
    """Charts into the directory of each format, which is made where there is none; other files there stay.

    Raises:
        MissingToolError: it can't be written.
    """
    for form, directory in directories.items():
        if directory is not None:
            names = []
            for name, content in drawn(form):
                write_atomically(directory / name, content)
                names.append(name)
            say(f"charts: {len(names)} in {directory}" if names else f"charts: none, {why_none}")


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
