"""``gpubench bisect``: which of several points made a workload slower."""

import json
from pathlib import Path
from typing import Annotated

import typer

from gpubench.campaign.options import CampaignOptions
from gpubench.cli.options import with_options
from gpubench.cli.say import say, say_text
from gpubench.errors import EXIT_INCONCLUSIVE, UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(with_options(bisect))


def bisect(
    *,
    search: Annotated[
        Path | None, typer.Argument(help="Directory of a search to go on with.", show_default=False)
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            help="The points in their order, written like --variants, separated by blanks; the first and the last are "
            "the ends."
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Workload of the suite that is measured; default: the only one.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; progress goes to standard error.")
    ] = False,
    asked: CampaignOptions,
) -> None:
    """Find the point from which a workload is slower. Confirmed in fresh blocks.

    Each step measures one or two new points and both ends in the same blocks. Exit 0: a change is named; 21: none is.
    """
    import contextlib
    import sys

    from gpubench.campaign.bisection import begin_search, open_search, run_search
    from gpubench.cli.progress import progress_for
    from gpubench.report.bisection import SearchResult, answer_lines, plain

    if (search is None) == (points is None):
        raise UsageError(
            "name the points of a new search, or the directory of one", then='--points "a=... b=... c=..."'
        )
    if search is not None and (workload is not None or asked != CampaignOptions()):
        raise UsageError(f"{search} has its options already", then="leave them out")
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        opened = open_search(search) if search else begin_search((points or "").split(), workload, asked)
        say(f"search {opened.directory}")
        steps, answer = run_search(opened, progress_for)
    result = SearchResult(opened.workload, opened.labels, steps, answer, opened.settings)
    if as_json:
        say_text(json.dumps(plain(result), indent=1, ensure_ascii=False))
    else:
        for line in ["", *answer_lines(result)]:
            say(line)
    if answer.word != "named":
        raise typer.Exit(EXIT_INCONCLUSIVE)
