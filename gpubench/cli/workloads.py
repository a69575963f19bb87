"""``gpubench suites``: what can be measured; and ``measure``: one workload by itself."""

import contextlib
import json
import sys
from typing import Annotated

import typer

from gpubench.campaign.options import MeasureOptions
from gpubench.cli.options import command_group, with_options
from gpubench.cli.say import say_lines, say_text
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command and the group."""
    app.command()(with_options(measure))
    group = command_group("Suites, and the workloads that they are made of.")
    group.command("list")(list_)
    app.add_typer(group, name="suites")


def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A suite: its workloads; or a workload: all details of it; default: every suite and workload by name.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all details of workloads as one JSON object.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a table of workloads in Markdown.")] = False,
) -> None:
    """Suites and workloads. What is timed, which bytes are counted, and how the answer is checked."""
    from gpubench.report import catalogue
    from gpubench.resources.own_workloads import workloads_named

    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    if as_json:
        say_text(json.dumps(catalogue.document(workloads_named(name)), indent=1, ensure_ascii=False))
        return
    say_lines(catalogue.markdown_lines(workloads_named(name)) if as_markdown else catalogue.listed(name))


def measure(options: MeasureOptions) -> None:
    """Measure one workload. With every check that a campaign makes.

    Exits 4 if it failed or its answer was wrong.
    """
    from gpubench.campaign import measure
    from gpubench.campaign.measured import require_ok, result_lines
    from gpubench.cli.progress import progress_for

    # With --json, progress goes to standard error, so that standard output is one object.
    with contextlib.redirect_stdout(sys.stderr) if options.as_json else contextlib.nullcontext():
        result = measure.measure(options, progress_for)
    if options.as_json:
        say_text(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        say_lines(result_lines(result))
    require_ok(result)
