"""Commands for results: ``compare``, ``report``, ``diff``, ``trend``, and the group ``results``."""

from pathlib import Path
from typing import Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.cli import completion, options
from gpubench.cli.options import with_options
from gpubench.cli.results.options import (
    AsJson,
    CompareOptions,
    Directories,
    File,
    MaybeDirectories,
    MaybeKept,
    Other,
    ReportOptions,
    Target,
    TrendOptions,
)
from gpubench.errors import UsageError

FORMATS = ("csv", "parquet", "mlflow")


def register(app: typer.Typer) -> None:
    """Add the commands and the group."""
    for command in (compare, report, trend):
        app.command()(with_options(command))
    app.command()(diff)
    group = options.command_group(
        "Import, export, pack, check, publish and validate results. Import reads results of other tools."
    )
    group.command("import")(import_results)
    for kept in (export, pack, fsck, publish, validate):
        group.command()(kept)
    app.add_typer(group, name="results")


def compare(
    *, campaign: Target = None, other: Other = None, asked: CompareOptions, outputs: campaign_options.Outputs = None
) -> None:
    """Verdict of each workload: slower, faster, equal or undecided.

    Exit 0: all equivalent or improved; 20: a regression or a broken one; 21: undecided.

    TARGET may also be a table of samples (CSV, JSONL, Parquet). With B: B against A, unpaired, cell by cell that both
    have. The family for Holm's correction is every planned comparison (every cell of a table), whatever is
    shown. In a campaign's directory results.parquet and verdicts.json are written, also while it runs.
    """
    from gpubench.cli.results.show import compare as run

    run(campaign, other, outputs, asked)


def report(
    *, campaign: Target = None, other: Other = None, asked: ReportOptions, outputs: campaign_options.Outputs = None
) -> None:
    """Judge, and write report.html and report.md. Opens offline; a pack's is NAME.report.html beside it.

    With B (the same suite on Slurm and on Kubernetes, say): one page with both curves, and a verdict at every size that
    both have. Sizes with another layout of workers are refused. With --only: verdicts; scaling
    (speed-up, efficiency); links between workers; runs (the outcome of each); coverage (what was
    measured when); changes over dates.
    """
    from gpubench.cli.results.show import report as run

    run(campaign, other, outputs, asked)


def diff(
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="A",
            help="A variant; a run: its id, the beginning of it, or its directory; or a campaign, alone for its two "
            "variants; default: the newest with results.",
            show_default=False,
            autocompletion=completion.variants,
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            help="What to compare it with, of the same kind.",
            show_default=False,
            autocompletion=completion.variants,
        ),
    ] = None,
    campaign: Annotated[
        Path | None,
        typer.Argument(
            help="Campaign of the variants, or of runs that are named by their ids; default: the newest with results.",
            show_default=False,
            autocompletion=completion.campaigns,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What differs between two variants, runs or campaigns. Planned or not, with the noise of both.

    Variants are compared over all blocks; campaigns by their plans and the first ok run of each. To see whether
    the differences matter: compare A B.
    """
    from gpubench.cli.results.diff import show_differences

    show_differences(first, second, campaign, as_json=as_json)


def trend(*, directories: MaybeDirectories = None, asked: TrendOptions) -> None:
    """Show results over time. What was measured when, why the rest is missing, and where figures changed permanently.

    Each cell and version of 8 dates or more is searched for changes. A change is not a
    verdict on a version: it is a difference between days.
    """
    from gpubench.cli.results.trend import show_trend

    show_trend(directories or [Path("outputs")], asked)


def import_results(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="dask-cuda, draco-csv, nightly, parsl-perf, mlflow or table.",
        ),
    ],
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
    from gpubench.cli.results.import_results import import_results as run

    run(form, paths, out, variant=variant, date=date, site=site, columns=columns)


def pack(
    campaign: MaybeKept = None,
    out: Annotated[Path | None, typer.Option(help="File to write; default: NAME.gpubench.zip here.")] = None,
) -> None:
    """Pack a campaign or an import into one file. Readers take this zip archive in place of the directory.

    The same content gives the same bytes. Derived files (results, verdicts, reports) are left out: readers make them
    again. Refused while a job runs; missing runs are named, also in the pack. Commands that change a campaign take no
    pack: unzip it first.
    """
    from gpubench.results.packing import pack as write

    write(campaign, out)


def fsck(directories: Directories, as_json: AsJson = False) -> None:
    """Find files that aren't what the runs wrote. Exit 0 if there are none, else 3.

    Plan against the ids in it, records against the plan, files against their record's hashes. Nothing is written. Not
    detected are: an edit of a file together with all its hashes, and of a field that no id in plan.json covers, like
    the margin.
    """
    from gpubench.cli.results.fsck import fsck as look

    look(directories, as_json=as_json)


def publish(
    pack: Annotated[Path, typer.Argument(metavar="PACK", help="A file that results pack wrote.")],
    repository: Annotated[Path, typer.Option("--to", help="Directory of a repository of contributions.")],
    allow_homes: Annotated[
        bool, typer.Option("--allow-homes", help="Publish paths of people's homes; the index says so.")
    ] = False,
) -> None:
    """Publish a pack in a repository that several sites add to. After checks: hashes, provenance, secrets, homes, size.

    The pack becomes contributions/SITE/CAMPAIGN.gpubench.zip with an entry in contributions/index.json: commit both.
    Exit 3 if something may not be published.
    """
    from gpubench.contributions import publish as run

    run(pack, repository, homes=allow_homes)


def validate(
    repository: Annotated[Path, typer.Argument(metavar="REPO", help="Directory of a repository of contributions.")],
) -> None:
    """Validate a repository of contributions, as its CI does. Exit 3 for a pack or an index that has a fault."""
    from gpubench.contributions import validate as run

    run(repository)


def export(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="csv, parquet or mlflow.", show_default=False)],
    directory: MaybeKept = None,
    path: File = None,
    tracking_uri: Annotated[
        str | None, typer.Option(help="Of mlflow: server, or database; default: sqlite:///outputs/mlflow.db.")
    ] = None,
    outputs: campaign_options.Outputs = None,
) -> None:
    """Export a campaign or an import for other tools.

    csv and parquet: every sample in one FILE. mlflow: a campaign as nested runs, with its report; a second export adds
    new runs only; it needs gpubench[mlflow].
    """
    from gpubench.cli.results.export import export_mlflow, export_table
    from gpubench.model.base import nearest

    if form not in FORMATS:
        raise UsageError(f"there is no format '{form}'{nearest(form, FORMATS)}")
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
