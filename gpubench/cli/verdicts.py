"""Commands that answer: ``compare``, ``report``, ``diff`` and ``trend``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.cli.options import with_options
from gpubench.cli.results_options import (
    AsJson,
    CompareOptions,
    MaybeDirectories,
    Other,
    QuestionOptions,
    ReportOptions,
    Target,
    TrendOptions,
)
from gpubench.errors import UsageError
from gpubench.report.section_names import Content

if TYPE_CHECKING:
    from gpubench.report.answer import VerdictAnswer
    from gpubench.report.page import Page
    from gpubench.results.importers.directory import ImportedResults
    from gpubench.stats.question import Question
    from gpubench.store.campaign import Campaign

NOTHING_TO_ALLOW = {
    "import": "an import doesn't record its environment",
    "table": "a table doesn't record its environment",
    "sides": "two targets are compared without a check of their environments",
}
"""By kind of results: why they don't support ``--allow``."""


def register(app: typer.Typer) -> None:
    for command in (compare, report, trend):
        app.command()(with_options(command))
    app.command()(diff)


def compare(
    *, campaign: Target = None, other: Other = None, options: CompareOptions, outputs: campaign_options.Outputs = None
) -> None:
    """Verdict of each workload: slower, faster, equal or undecided.

    Exit 0: all equivalent or improved; 20: a regression or a broken one; 21: undecided.

    TARGET may also be a table of samples (CSV, JSONL, Parquet). With B: B against A, unpaired, cell by cell that both
    have. The family for Holm's correction is every planned comparison, whatever is shown (of a table, every cell
    with every variant that is compared). In a campaign's directory results.parquet and verdicts.json are written,
    also while it runs.
    """
    from gpubench.cli.display import show_answer
    from gpubench.results.loading import is_table
    from gpubench.stats.verdict import exit_code

    form = options.form
    table = campaign if other is None and campaign and is_table(campaign) else None
    if table is None and (options.by or options.columns):
        option = "--by" if options.by else "--columns"
        what = f"{option} is for tables of samples: other targets define their own cells"
        raise UsageError(what, then="leave it out")
    answer = _answer(campaign, other, outputs, options) if table is None else _table_answer(table, options)
    show_answer(answer, form)
    raise typer.Exit(exit_code(answer.verdicts, options.fail_on))


def _table_answer(path: Path, options: CompareOptions) -> VerdictAnswer:
    from gpubench.report.contents import verdict_answer
    from gpubench.results.loading import load_table

    question = _question("table", options)
    return verdict_answer(load_table(path, options.columns, (options.by or "").replace(",", " ").split()), question)


def _answer(target: Path | None, other: Path | None, outputs: Path | None, options: QuestionOptions) -> VerdictAnswer:
    """The verdicts of a campaign, an import, or two of them."""
    from gpubench.report.contents import campaign_answer, verdict_answer
    from gpubench.results.loading import load_sides, results_of
    from gpubench.stats.question import Question
    from gpubench.store.campaign import Campaign

    if target is not None and other is not None:
        question = _question("sides", options)
        return verdict_answer(load_sides(target, other, question, every=True), question)
    kept = _opened(target, outputs)
    if isinstance(kept, Campaign):
        return campaign_answer(kept, _question("campaign", options))
    question = _question("import", options)
    answer = verdict_answer(results_of(kept), question)
    if question != Question():
        return answer
    import dataclasses

    return dataclasses.replace(answer, document=lambda: _import_document(kept))


def _import_document(kept: ImportedResults) -> str:
    from gpubench.cli.display import search_bar
    from gpubench.report.page import markdown
    from gpubench.report.writing import page_of_import

    return markdown(page_of_import(kept, search_bar)[0])


def _opened(target: Path | None, outputs: Path | None) -> Campaign | ImportedResults:
    """What is named, else the newest campaign with results."""
    from gpubench.results.targets import newest, opened
    from gpubench.store.campaign import Campaign

    return Campaign.open(newest(outputs, with_results=True)) if target is None else opened(target)


def _question(kind: str, options: QuestionOptions) -> Question:
    from gpubench.campaign.option_values import parsed
    from gpubench.stats.question import Question

    margin = parsed("margin", options.margin)
    if options.allow and kind in NOTHING_TO_ALLOW:
        raise UsageError(f"--allow: {NOTHING_TO_ALLOW[kind]}", then="leave it out")
    return Question(margin, options.baseline, options.candidate, tuple(options.allow or ()))


def report(
    *, campaign: Target = None, other: Other = None, options: ReportOptions, outputs: campaign_options.Outputs = None
) -> None:
    """Judge, and write report.html and report.md. Opens offline.

    With B (the same suite on Slurm and on Kubernetes, say): one page with both curves, and a verdict at every size that
    both have. Sizes with another layout of workers are refused. With --only: scaling (speed-up, efficiency), or runs
    (the outcome of each).
    """
    from gpubench.cli.display import show_answer
    from gpubench.results.loading import is_table
    from gpubench.store.campaign import SEARCH_FILE

    _refuse_what_excludes(options, two=other is not None)
    if campaign is not None and is_table(campaign):
        what = f"{campaign} is a table of samples, for which there is no page"
        raise UsageError(what, then=f"gpubench compare {campaign}")
    if campaign is not None and other is None and (campaign / SEARCH_FILE).is_file():
        _report_search(campaign, options)
    elif options.form == "markdown" and options.only is None:
        show_answer(_answer(campaign, other, outputs, options), options.form)
    elif campaign is not None and other is not None:
        _report_sides(campaign, other, options)
    else:
        _report_one(_opened(campaign, outputs), options)


def _report_search(directory: Path, options: ReportOptions) -> None:
    """The answer of a search and its page, or the same in Markdown."""
    from gpubench.cli.bisect import page_of_search
    from gpubench.cli.display import finish_report
    from gpubench.cli.say import say_text
    from gpubench.report.page import markdown
    from gpubench.stats.question import Question

    if options.only is not None or _question("campaign", options) != Question():
        raise UsageError(f"{directory} is a search, which has one answer", then=f"name a step: {directory}/step-00")
    page = page_of_search(directory, is_printed=options.form != "markdown")
    if options.form == "markdown":
        say_text(markdown(page))
    else:
        finish_report(page, options)


def _report_sides(first: Path, second: Path, options: ReportOptions) -> None:
    """One page with both curves of every workload, or the section that is asked for."""
    from gpubench.cli.display import finish_report, show_section, show_sides
    from gpubench.report.contents import section
    from gpubench.results.loading import load_sides
    from gpubench.results.targets import root_of

    question = _question("sides", options)
    if options.only not in (None, Content.SCALING):
        raise UsageError(f"two targets have no {options.only}", then="name one of them")
    sides = load_sides(first, second, question, every=False)
    if options.only is not None:
        show_section(section(sides, options.only, None), options.form)
        return
    names = [root_of(path).resolve().name for path in (first, second)]
    page = show_sides(sides, question, options.html or Path(f"{names[1]}-against-{names[0]}.html"))
    finish_report(page, options)


def _report_one(kept: Campaign | ImportedResults, options: ReportOptions) -> None:
    """Of a campaign or an import: the page, or the section that is asked for."""
    from gpubench.cli.display import finish_report, show_section
    from gpubench.report.contents import section
    from gpubench.results.loading import results_of
    from gpubench.stats.question import Question
    from gpubench.store.campaign import Campaign

    campaign = kept if isinstance(kept, Campaign) else None
    question = _question("campaign" if campaign else "import", options)
    if question != Question(allow=question.allow):
        raise UsageError(
            "--baseline, --candidate and --margin are for two targets",
            then="name a second target, or type: gpubench compare",
        )
    if options.only is not None:
        show_section(section(results_of(kept), options.only, campaign), options.form)
    else:
        finish_report(_written_page(kept, question), options)


def _written_page(kept: Campaign | ImportedResults, question: Question) -> Page:
    from gpubench.cli.display import show_answer, show_import, show_report
    from gpubench.report.contents import judged_answer
    from gpubench.results.judging import judge_campaign
    from gpubench.store.campaign import Campaign

    if not isinstance(kept, Campaign):
        return show_import(kept)
    judged = judge_campaign(kept, question)
    show_answer(judged_answer(judged, question))
    return show_report(kept, judged)


def _refuse_what_excludes(options: ReportOptions, *, two: bool) -> None:
    draws = options.html or options.svg
    for wrong, what, then in (
        (
            not two and options.html,
            "--html is for two targets: the page of one target is written beside it",
            "leave it out",
        ),
        (two and options.svg, "--svg is for one target", "leave it out"),
        (
            options.as_json and not options.only,
            "--json prints one section",
            "name it with --only, or: gpubench compare",
        ),
        (
            (options.only or options.as_markdown) and draws,
            "--only and --markdown print, --html and --svg draw",
            "choose one",
        ),
    ):
        if wrong:
            raise UsageError(what, then=then)


def diff(
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="A",
            help="A variant; a run: its id, the beginning of it, or its directory; or a campaign, alone for its two "
            "variants; default: the newest with results.",
            show_default=False,
        ),
    ] = None,
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="What to compare it with, of the same kind.", show_default=False)
    ] = None,
    campaign: Annotated[
        Path | None,
        typer.Argument(
            help="Campaign of the variants, or of runs that are named by their ids; default: the newest with results.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What differs between two variants, runs or campaigns. Planned or not, with the noise of both.

    Variants are compared over all blocks; campaigns by their plans and the first ok run of each. To see whether
    the differences matter: compare A B.
    """
    from gpubench.cli.display import show_section
    from gpubench.report.diff import differences

    show_section(differences(first, second, campaign), "json" if as_json else "lines")


def trend(*, directories: MaybeDirectories = None, options: TrendOptions) -> None:
    """Show results over time. Which sources were read, and where figures changed permanently.

    Each cell and version of 8 dates or more is searched for changes. A change is not a
    verdict on a version: it is a difference between days.
    """
    from gpubench.cli.display import search_bar, show_section, show_trend_page
    from gpubench.cli.say import warn
    from gpubench.report.history import trend_section
    from gpubench.results.changes import find
    from gpubench.results.history import history
    from gpubench.results.loading import load_all

    draws = options.html or options.svg
    if options.as_json and draws:
        raise UsageError("--json prints, --html and --svg write files", then="choose one")
    sources = [history(results) for results in load_all(directories or [Path("outputs")])]
    figures = [figure for source in sources for figure in source.figures]
    if not figures:
        warn("no figure has a date and a version, so there is no history to search")
    with search_bar() as searching:
        series = find(figures, searching)
    if draws:
        show_trend_page(sources, series, options)
    else:
        show_section(trend_section(sources, series), "json" if options.as_json else "lines")
