"""``gpubench suites``: what can be measured; and ``measure``: one workload by itself."""

import dataclasses
import json
from typing import Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.cli import completion, options
from gpubench.cli.options import with_options
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command and the group."""
    app.command()(with_options(measure))
    group = options.command_group("Suites, and the workloads that they are made of.")
    group.command("list")(list_)
    app.add_typer(group, name="suites")


def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A suite: its workloads; or a workload: all details of it; default: every suite and workload by name.",
            show_default=False,
            autocompletion=completion.suites_and_workloads,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all details of workloads as one JSON object.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a table of workloads in Markdown.")] = False,
) -> None:
    """Suites and workloads. What is timed, which bytes are counted, and how the answer is checked."""
    from gpubench.cli.say import say, say_text
    from gpubench.cli.workloads import catalogue

    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    if as_json:
        say_text(json.dumps(catalogue.document(catalogue.chosen(name)), indent=1, ensure_ascii=False))
        return
    for line in catalogue.markdown_lines(catalogue.chosen(name)) if as_markdown else catalogue.listed(name):
        say(line)


def measure(asked: "MeasureOptions") -> None:
    """Measure one workload. With every check that a campaign makes.

    Exits 4 if it failed or its answer was wrong.
    """
    from gpubench.cli.workloads import measure

    measure.measure(asked)


@dataclasses.dataclass(frozen=True)
class MeasureOptions:
    """What the user asked for, and the options that ask for it; None where nothing was given."""

    workload: Annotated[
        str,
        typer.Argument(
            help="As `gpubench suites list` names it, or a function or class of yours: FILE.py:NAME.",
            show_default=False,
            autocompletion=completion.workloads,
        ),
    ]
    backend: Annotated[
        str, typer.Option(help="Which of the workload's backends measures.", autocompletion=completion.backends)
    ] = "dask"
    gpus: Annotated[
        int | None, typer.Option(min=1, help="Number of GPUs of a node, one worker on each; NVML must know them.")
    ] = None
    cpus: Annotated[
        int | None,
        typer.Option(min=1, help="Number of CPUs of a node, one worker on each; with --threads, fewer workers."),
    ] = None
    workers: Annotated[int | None, typer.Option(min=1, help="Workers of a node.")] = None
    threads: Annotated[int | None, typer.Option(min=1, help="Threads per worker.")] = None
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the site.")] = 1
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE: a parameter (1e6, true, 64KiB, 30%, [10,100]), or a key of the site profile; repeatable.",
        ),
    ] = None
    size: Annotated[
        str | None,
        typer.Option(
            help="small, medium, large: sizes at which a worker holds 1, 10, 50 % of its memory (1, 10, 100 times the "
            "defaults where nothing is held); --set overrides this."
        ),
    ] = None
    reps: campaign_options.Reps = None
    warmup: Annotated[int | None, typer.Option(min=0, help="Repetitions before the first that counts.")] = None
    site: campaign_options.Site = "local"
    ucx: options.OneVariant = None
    protocol: campaign_options.Protocol = None
    runtime: campaign_options.Runtime = None
    base: campaign_options.Base = None
    date: campaign_options.Date = None
    seed: campaign_options.Seed = None
    outputs: campaign_options.Outputs = None
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; progress goes to standard error.")] = False
