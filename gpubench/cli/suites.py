"""``gpubench suites``: what can be measured."""

import json
from typing import Annotated

import typer

from gpubench.cli.options import command_group
from gpubench.cli.say import say_lines, say_text
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
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
