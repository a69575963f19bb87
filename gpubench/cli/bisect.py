"""``gpubench bisect``: which of several points made a workload slower."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Literal

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
    over: Annotated[
        Literal["versions"] | None,
        typer.Option(help="Make the points: versions, every release between the two of --variants or --ucx."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Workload of the suite that is measured; default: the only one.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; progress goes to standard error.")
    ] = False,
    options: CampaignOptions,
) -> None:
    """Find the point from which a workload is slower. Confirmed in fresh blocks.

    Each step measures one or two new points and both ends in the same blocks. Exit 0: a change is named; 21: none is.
    """
    import contextlib
    import sys

    from gpubench.campaign.bisection import begin_search, binding_notes, open_search, run_search
    from gpubench.campaign.bisection_points import versions_between
    from gpubench.cli.progress import progress_for
    from gpubench.report.bisection import SearchResult, answer_lines, plain

    if over is not None:
        if points is not None or search is not None:
            raise UsageError("--over makes the points of a new search", then="leave --points and the directory out")
        points = " ".join(versions_between((options.variants or (options.ucx or "").replace(",", " ")).split()))
        options = dataclasses.replace(options, variants=None, ucx=None)
    if (search is None) == (points is None):
        way = '--points "a=... b=... c=...", or --variants "A B" --over versions'
        raise UsageError("name the points of a new search, or the directory of one", then=way)
    if search is not None and (workload is not None or options != CampaignOptions()):
        raise UsageError(f"{search} has its options already", then="leave them out")
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        opened = open_search(search) if search else begin_search((points or "").split(), workload, options)
        say(f"search {opened.directory}")
        steps, answer = run_search(opened, progress_for)
    notes = binding_notes(opened, answer)
    result = SearchResult(opened.workload, opened.labels, steps, answer, opened.settings, notes)
    if as_json:
        say_text(json.dumps(plain(result), indent=1, ensure_ascii=False))
    else:
        for line in ["", *answer_lines(result)]:
            say(line)
    if answer.word != "named":
        raise typer.Exit(EXIT_INCONCLUSIVE)
