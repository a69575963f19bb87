"""``gpubench compare`` and ``gpubench report``: print, draw and write what a result set provides."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from gpubench import resources
from gpubench.campaign.option_values import parsed
from gpubench.cli.display import show_next_steps, show_verdicts
from gpubench.cli.results.answers import answer, campaign_answer, section
from gpubench.cli.results.options import CompareOptions, Content, Form, QuestionOptions, ReportOptions
from gpubench.cli.say import say, say_text
from gpubench.errors import UsageError
from gpubench.files import write_atomically
from gpubench.report.answer import VerdictAnswer
from gpubench.report.sections import Section, json_text, markdown_text, text_lines
from gpubench.results.loading import is_table, load_sides, load_table, results_of
from gpubench.results.targets import newest, opened, root_of
from gpubench.stats.question import Question
from gpubench.stats.verdict import exit_code
from gpubench.store.campaign import Campaign

if TYPE_CHECKING:
    from gpubench.importers.directory import ImportedResults
    from gpubench.report.page import Page
    from gpubench.report.pictures import Format

PIPED_WIDTH = 80


CANNOT = {
    "campaign": {"summary": "a campaign is judged by the summary that was planned"},
    "import": {
        "allow": "an import doesn't record its environment",
        "summary": "an import is judged by the mean of a date",
    },
    "table": {"allow": "a table doesn't record its environment"},
    "sides": {"allow": "two targets are compared without a check of their environments"},
}
"""By kind of results: options that they don't support, and why."""


def compare(target: Path | None, other: Path | None, outputs: Path | None, asked: CompareOptions) -> NoReturn:
    """Print the verdicts; ends with their exit code."""
    if asked.samples is not None and target is not None:
        raise UsageError("--samples and TARGET are two names of the same thing", then="leave --samples out")
    form, target = asked.form, asked.samples or target
    if target is not None and other is None and (asked.samples or is_table(target)):
        question = _question("table", asked)
        by = (asked.by or "").replace(",", " ").split()
        found = answer(load_table(target, asked.columns, by), question)
    elif asked.by or asked.columns:
        option = "--by" if asked.by else "--columns"
        raise UsageError(
            f"{option} is for tables of samples: other targets define their own cells", then="leave it out"
        )
    else:
        found = _answer(target, other, outputs, asked)
    _show_answer(found, form)
    raise typer.Exit(exit_code(found.verdicts, asked.fail_on))


def _answer(target: Path | None, other: Path | None, outputs: Path | None, asked: QuestionOptions) -> VerdictAnswer:
    """The verdicts of a campaign, an import, or two of them."""
    if target is not None and other is not None:
        question = _question("sides", asked)
        return answer(load_sides(target, other, question, every=True), question)
    kept = _opened(target, outputs)
    if isinstance(kept, Campaign):
        return campaign_answer(kept, _question("campaign", asked))
    question = _question("import", asked)
    found = answer(results_of(kept), question)
    if question != Question():
        return found

    def document() -> str:
        from gpubench.cli.results.pages import import_page
        from gpubench.report.page import markdown

        return markdown(import_page(kept)[0])

    return dataclasses.replace(found, document=document)


def _opened(target: Path | None, outputs: Path | None) -> Campaign | ImportedResults:
    """What is named, else the newest campaign with results."""
    return Campaign.open(newest(outputs, with_results=True)) if target is None else opened(target)


def report(target: Path | None, other: Path | None, outputs: Path | None, asked: ReportOptions) -> None:
    """Print one section, or the verdicts and write the page."""
    _refuse_what_excludes(asked, two=other is not None)
    form = asked.form
    if target is not None and is_table(target):
        return _report_table(target, other, asked)
    if asked.only is Content.VERDICTS or (form == "markdown" and asked.only is None):
        return _show_answer(_answer(target, other, outputs, asked), form)
    if target is not None and other is not None:
        question = _question("sides", asked)
        if asked.only not in (None, Content.SCALING):
            raise UsageError(f"two targets have no {asked.only}", then="name one of them")
        sides = load_sides(target, other, question, every=False)
        if asked.only is not None:
            return show_section(section(sides, asked.only, asked.workload, None), form)
        from gpubench.cli.results.pages import write_sides

        names = [root_of(path).resolve().name for path in (target, other)]
        page = write_sides(sides, question, asked.html or Path(f"{names[1]}-against-{names[0]}.html"))
    else:
        kept = _opened(target, outputs)
        question = _question("campaign" if isinstance(kept, Campaign) else "import", asked)
        if question != Question(allow=question.allow):
            raise UsageError(
                "--baseline, --candidate, --margin and --summary are for two targets, or --only verdicts",
                then="name a second target",
            )
        if asked.only is not None:
            campaign = kept if isinstance(kept, Campaign) else None
            return show_section(section(results_of(kept), asked.only, asked.workload, campaign), form)
        from gpubench.cli.results.pages import write_campaign, write_import

        page = write_campaign(kept, question) if isinstance(kept, Campaign) else write_import(kept)
    _finish(page, asked)
    return None


def _report_table(target: Path, other: Path | None, asked: ReportOptions) -> None:
    if other is None and (asked.only is Content.VERDICTS or (asked.form == "markdown" and asked.only is None)):
        return _show_answer(answer(load_table(target, None, ()), _question("table", asked)), asked.form)
    if asked.only is not None:
        raise UsageError(f"{target}: it has no {asked.only}", then="name a campaign")
    raise UsageError(f"{target} is a table of samples, for which there is no page", then=f"gpubench compare {target}")


def _finish(page: Page, asked: ReportOptions) -> None:
    """Charts as files, plots in the terminal, and what can be typed next."""
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
            from gpubench.report.pictures import images

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


def _question(kind: str, asked: QuestionOptions) -> Question:
    margin, summary = parsed("margin", asked.margin), parsed("summary", asked.summary)
    question = Question(margin, asked.baseline, asked.candidate, tuple(asked.allow or ()), summary)
    for name, why in CANNOT[kind].items():
        if getattr(question, name) != getattr(Question(), name):
            raise UsageError(f"--{name}: {why}", then="leave it out")
    return question
