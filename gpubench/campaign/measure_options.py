"""Options of the measurement of one workload."""

import dataclasses
from typing import Annotated

import typer

from gpubench.campaign.options import Base, Date, OneVariant, Outputs, Protocol, Reps, Runtime, Seed, Site


@dataclasses.dataclass(frozen=True)
class MeasureOptions:
    """The options of a measurement; None for an option that was not given."""

    workload: Annotated[
        str,
        typer.Argument(
            help="As `gpubench suites list` names it, or a function or class of yours: FILE.py:NAME.",
            show_default=False,
        ),
    ]
    backend: Annotated[str, typer.Option(help="Which of the workload's backends measures.")] = "dask"
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
    reps: Reps = None
    warmup: Annotated[int | None, typer.Option(min=0, help="Repetitions before the first that counts.")] = None
    site: Site = "local"
    ucx: OneVariant = None
    protocol: Protocol = None
    runtime: Runtime = None
    base: Base = None
    date: Date = None
    seed: Seed = None
    outputs: Outputs = None
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; progress goes to standard error.")] = False
