"""Results of other tools, results over time, results kept for years: import-results, history, changes, fsck."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("import-results")(import_results)
    for command in (history, changes, fsck, pack):
        app.command()(command)


Directories = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR",
        help="Campaigns, imports, packs, or directories that hold some.",
        autocompletion=completion.campaigns,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def import_results(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="dask-cuda, draco-csv, parsl-perf, mlflow, dask-bench, osu, ucx-perftest, ucxx, nccl-tests, "
            "cudf-polars, rapidsmpf or table.",
        ),
    ],
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Files, or directories that hold some; LABEL=PATH says of which version."),
    ],
    out: Annotated[Path, typer.Option(help="Directory to write, like a campaign's: compare and others read it.")],
    variant: Annotated[str | None, typer.Option(help="Version that was measured, where the files don't say.")] = None,
    date: Annotated[str | None, typer.Option(help="YYYYMMDD of the measurement, where the files don't say.")] = None,
    site: Annotated[str | None, typer.Option(help="What you call the machine.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="FIELD=COLUMN,...", help="What a table's columns hold: wall_s=seconds,variant=build."),
    ] = None,
) -> None:
    """Read what other tools wrote. What can't be read is named by file and line, and the rest is kept.

    Exit 0 where rows were kept, 3 where none was, or where most rows of a file were refused. Nothing is made up: what a
    source never recorded stays unknown.
    """
    from gpubench.cli.results.imported import import_results as run

    run(form, paths, out, variant=variant, date=date, site=site, columns=columns)


def history(
    directories: Directories,
    as_json: AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write one page that opens offline: charts over dates, changes, what is missing."),
    ] = None,
    svg: options.Svg = None,
    png: options.Png = None,
) -> None:
    """What was measured when, of what, in which versions. Planned x observed, with a reason for what isn't there."""
    from gpubench.cli.results.history import show_history

    if as_json and (html or svg or png):
        raise UsageError("--json prints, --html, --svg and --png write files", then="choose one")
    show_history(directories, as_json=as_json, page=html, svg=svg, png=png)


def changes(directories: Directories, as_json: AsJson = False) -> None:
    """Where figures changed for good over the dates. Of each cell and version, with what else changed there.

    Figures of less than 8 dates aren't searched. A change is no verdict on a version: it compares days.
    """
    from gpubench.cli.results.history import show_changes

    show_changes(directories, as_json=as_json)


def fsck(directories: Directories, as_json: AsJson = False) -> None:
    """Find torn, foreign and edited files. What contradicts what else is there; exit 0 where none is found, else 3.

    Plan against the hashes in it, records against the plan, files against their record's hashes, tables against their
    runs. Nothing is written. A campaign that still runs is no finding; what can't be proven is said. Not found out is
    who edits a file and every hash of it; nor what no id in plan.json is made of, like the margin.
    """
    from gpubench.cli.results.fsck import fsck as look

    look(directories, as_json=as_json)


def pack(
    campaign: Annotated[
        Path, typer.Argument(help="A campaign or an import.", show_default=False, autocompletion=completion.campaigns)
    ],
    out: Annotated[Path | None, typer.Option(help="File to write; default: NAME.gpubench.zip here.")] = None,
) -> None:
    """One file that readers take in place of a directory. A zip archive with a list of hashes.

    The same content gives the same bytes. What is derived (results, verdicts, reports) is left out: readers make it
    anew. Refused while a job runs; runs that are missing are named, also in the pack. What changes a campaign takes no
    pack: unzip it first.
    """
    from gpubench.cli.results.pack import pack as write

    write(campaign, out)
