"""What can be measured, and one workload measured by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion
from gpubench.cli.declared import with_options
from gpubench.cli.workloads.options import MeasureOptions
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(workloads)
    app.command()(with_options(measure))
    group = typer.Typer(
        help="Suites of your own.",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.callback()(_suites)
    group.command()(new)
    app.add_typer(group, name="suites")


def workloads(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Everything of this one; default: all, in short.",
            show_default=False,
            autocompletion=completion.workloads,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as one JSON object.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="As a table in Markdown.")] = False,
) -> None:
    """What can be measured. What is timed, which bytes count, what the answer is checked against."""
    from gpubench.cli.say import say, say_text
    from gpubench.cli.workloads import describe

    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    chosen = describe.chosen(name)
    if as_json:
        say_text(json.dumps(describe.document(chosen), indent=1, ensure_ascii=False))
        return
    lines = (
        describe.markdown_lines(chosen)
        if as_markdown
        else (describe.table_lines(chosen) if name is None else describe.sheet_lines(chosen[0]))
    )
    for line in lines:
        say(line)


def _suites() -> None:
    """Suites of your own."""


def new(
    name: Annotated[str, typer.Argument(help="Name of the suite and of both files.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder that they are written into.")] = Path(),
) -> None:
    """Write a suite and a file with workloads of your own. NAME.toml and NAME.py, commented; they run as they are."""
    from gpubench.cli.workloads.new_suite import new_suite

    new_suite(name, out)


def measure(asked: MeasureOptions) -> None:
    """Measure one workload, here or on a running cluster. With every check that a campaign makes.

    Exits 4 when it failed or its answer was wrong. On a cluster that gpubench didn't start nothing is changed, and what
    isn't controlled is said: such numbers belong into no comparison.
    """
    from gpubench.cli.workloads import measure

    measure.main(asked)
