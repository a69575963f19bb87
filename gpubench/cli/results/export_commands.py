"""The group ``gpubench export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options

Campaign = Annotated[
    Path,
    typer.Argument(
        help="Directory of the campaign, or a pack.", show_default=False, autocompletion=completion.campaigns
    ),
]
Kept = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="A campaign or an import, also packed.",
        show_default=False,
        autocompletion=completion.campaigns,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        help="Results as other tools read them. The Draco tables, CSV, Parquet, MLflow.",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for command in (csv, parquet, mlflow):
        group.command()(command)
    group.command("draco-csv")(draco_csv)
    app.add_typer(group, name="export")


def draco_csv(
    campaign: Campaign,
    merges: Annotated[Path, typer.Argument(metavar="MERGE.csv", help="Table of the joins to write.")],
    transposes: Annotated[Path, typer.Argument(metavar="TRANSPOSE.csv", help="Table of the transpose sums to write.")],
) -> None:
    """The two tables of dask-cuda-benchmarks. Old plots keep working; what they get wrong is put right."""
    from gpubench.cli.results.export import export_draco

    export_draco(campaign, merges, transposes)


def csv(directory: Kept, path: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")]) -> None:
    """Every sample as one CSV file."""
    from gpubench.cli.results.export import export_table

    export_table(directory, path, as_parquet=False)


def parquet(directory: Kept, path: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")]) -> None:
    """Every sample as one Parquet file."""
    from gpubench.cli.results.export import export_table

    export_table(directory, path, as_parquet=True)


def mlflow(
    campaign: options.MaybeResults = None,
    tracking_uri: Annotated[
        str | None, typer.Option(help="Tracking server, or database; default: sqlite:///outputs/mlflow.db.")
    ] = None,
    outputs: options.Outputs = None,
) -> None:
    """A campaign as nested runs of MLflow, with its report. A second time only what is new. Needs gpubench[mlflow]."""
    from gpubench.cli.results.export import export_mlflow

    export_mlflow(campaign, outputs, tracking_uri)
