"""``gpubench results``: import, export and check."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.cli import options
from gpubench.cli.results_options import AsJson, Directories, File, MaybeKept
from gpubench.cli.say import say, say_lines, say_text, warn
from gpubench.errors import DataError, UsageError

EXPORTS = ("csv", "parquet", "mlflow")


def register(app: typer.Typer) -> None:
    group = options.command_group("Import, export and check results. Import reads results of other tools.")
    group.command("import")(import_results)
    for command in (export, fsck):
        group.command()(command)
    app.add_typer(group, name="results")


def import_results(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="{gpubench.results.importers.formats.FORMATS}.")],
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Files, or directories that hold them; LABEL=PATH names their version."),
    ],
    out: Annotated[Path, typer.Option(help="Directory to write, like a campaign's: compare and others read it.")],
    variant: Annotated[str | None, typer.Option(help="Version that was measured, if the files don't say.")] = None,
    date: Annotated[str | None, typer.Option(help="YYYYMMDD of the measurement, if the files don't say.")] = None,
    site: Annotated[str | None, typer.Option(help="Name of the machine.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="FIELD=COLUMN,...", help="What a table's columns hold: wall_s=seconds,variant=build."),
    ] = None,
) -> None:
    """Read results of other tools. Rows that can't be read are named by file and line, the rest is kept.

    Exit 0 if rows were kept, 3 if none was, or if most rows of a file were refused. Nothing is invented: what a
    source never recorded stays unknown.
    """
    from gpubench.results.importers.base import day
    from gpubench.results.importers.directory import Given, import_files
    from gpubench.results.importers.formats import FORMATS
    from gpubench.results.importers.summary import import_lines, refused_lines

    if form not in FORMATS:
        raise UsageError(f"no format '{form}'", then=f"there are {', '.join(FORMATS)}")
    given_day = None if date is None else day(date)
    if date is not None and given_day is None:
        raise UsageError(f"--date '{date}' is no date", then="write it like 20261107")
    imported = import_files(form, FORMATS[form], paths, out, Given(variant, given_day, site, columns))
    say_lines(import_lines(imported))
    for line in refused_lines(imported.note["refused"]):
        warn(line)


def fsck(directories: Directories, as_json: AsJson = False) -> None:
    """Find files that aren't what the runs wrote. Exit 0 if there are none, else 3.

    Plan against the ids in it, records against the plan, files against their record's hashes. Nothing is written. Not
    detected are: a run whose directory or record is gone, which status calls lost; an edit of a file together with its
    hash in run.json; of what only run.json says, like how a run ended; and of a field that no id in plan.json covers,
    like the margin.
    """
    from gpubench.model.text import counted
    from gpubench.results.fsck import check_all

    checked = check_all(directories)
    if as_json:
        plain = [
            {"path": str(path), "findings": [dataclasses.asdict(finding) for finding in findings]}
            for path, findings in checked.items()
        ]
        say_text(json.dumps({"schema": "gpubench/fsck/1", "checked": plain}, indent=1))
    else:
        for path, findings in checked.items():
            for finding in findings:
                say(str(finding))
            say(f"{path}: {counted(len(findings), 'finding') if findings else 'no findings'}")
    if any(checked.values()):
        raise typer.Exit(DataError.exit_code)


def export(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="{gpubench.cli.results.EXPORTS}.", show_default=False)],
    directory: MaybeKept = None,
    path: File = None,
    tracking_uri: Annotated[
        str | None, typer.Option(help="Of mlflow: server, or database; default: sqlite:///outputs/mlflow.db.")
    ] = None,
    outputs: campaign_options.Outputs = None,
) -> None:
    """Export a campaign or an import for other tools.

    csv and parquet: every sample in one FILE. mlflow: a campaign as nested runs, with its report; a second export adds
    new runs only; it needs MLflow.
    """
    from gpubench.model.base import nearest
    from gpubench.results.exporters.export import export_mlflow, export_table

    if form not in EXPORTS:
        raise UsageError(f"there is no format '{form}'{nearest(form, EXPORTS)}")
    if form == "mlflow":
        if path is not None:
            raise UsageError("mlflow writes no file", then="leave FILE out; --tracking-uri says where to write")
        export_mlflow(directory, outputs, tracking_uri)
    elif directory is None or path is None:
        raise UsageError(
            f"{form} needs a campaign and a file", then=f"gpubench results export {form} DIR samples.{form}"
        )
    elif tracking_uri is not None:
        raise UsageError("--tracking-uri is for mlflow", then="leave it out")
    else:
        export_table(directory, path, as_parquet=form == "parquet")
