"""``gpubench bisect``: what made a workload slower."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpubench.campaign.options import CampaignOptions
from gpubench.cli.options import with_options
from gpubench.cli.say import say, say_text
from gpubench.errors import EXIT_INCONCLUSIVE

if TYPE_CHECKING:
    from gpubench.report.bisection_page import AnyOutcome
    from gpubench.report.page import Page


def register(app: typer.Typer) -> None:
    app.command()(with_options(bisect))


def bisect(
    *,
    directory: Annotated[
        Path | None,
        typer.Argument(
            help="A search to go on with, or a campaign whose largest regression is searched; default: the newest "
            "campaign with results, unless points or variants are named.",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            help="The points in their order, written like --variants, separated by blanks; the first and the last are "
            "the ends."
        ),
    ] = None,
    over: Annotated[
        Literal["versions", "commits", "settings", "packages"] | None,
        typer.Option(
            help="What lies between two variants: versions, every release; commits of UCX, with --repo; settings or "
            "packages, those in which they differ. Default for a campaign: versions, if there are some between."
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Workload that is measured; default: the only one, or that of the regression.")
    ] = None,
    repo: Annotated[
        Path | None, typer.Option(help="A clone of UCX on this machine, whose commits --over commits builds.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; progress goes to standard error.")
    ] = False,
    options: CampaignOptions,
) -> None:
    """Find what made it slower: a version, commit, setting or package.

    Each step measures one or two new points and what they are compared with in the same blocks; the answer is confirmed
    in fresh blocks. report.html in the search's directory is the page of the answer; gpubench report SEARCH writes it
    again. Exit 0: a change is named; 21: none is.
    """
    import contextlib
    import sys

    from gpubench.campaign.bisection import run_search
    from gpubench.campaign.bisection_beginning import SearchQuestion, chosen_search
    from gpubench.cli.progress import progress_for
    from gpubench.report.bisection import result_of

    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        opened = chosen_search(directory, SearchQuestion(points, over, workload, repo), options)
        say(f"search {opened.directory}")
        search, steps, answer = run_search(opened, progress_for)
        result = result_of(search, steps, answer)
        _write(result, is_printed=not as_json)
    if as_json:
        say_text(json.dumps(result.plain(), indent=1, ensure_ascii=False))
    if result.word != "named":
        raise typer.Exit(EXIT_INCONCLUSIVE)


def page_of_search(directory: Path, *, is_printed: bool) -> Page:
    """Write the page of a search that has ended; raises IncompleteError: it hasn't."""
    from gpubench.campaign.bisection import answered, open_search
    from gpubench.report.bisection import result_of

    search, steps, answer = answered(open_search(directory))
    return _write(result_of(search, steps, answer), is_printed=is_printed)


def _write(result: AnyOutcome, *, is_printed: bool) -> Page:
    """The page, which lies beside the steps; the answer is printed below its path."""
    from gpubench.report.bisection_page import lines, search_page
    from gpubench.report.writing import write_page

    page, path = search_page(result), result.search.directory / "report.html"
    write_page(page, path, path.with_suffix(".md"))
    if is_printed:
        for line in [f"report: {path}", "", *lines(result)]:
            say(line)
    return page
