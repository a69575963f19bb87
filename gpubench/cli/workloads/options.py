"""What `measure` was asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options


@dataclasses.dataclass(frozen=True)
class MeasureOptions:
    """What the user asked for, and the options that ask for it; None where nothing was given."""

    workload: Annotated[
        str,
        typer.Argument(
            help="As `gpubench workloads` lists it, or a function or class of yours: FILE.py:NAME.",
            show_default=False,
            autocompletion=completion.workloads,
        ),
    ]
    backend: Annotated[
        str, typer.Option(help="Who measures, of the workload's backends.", autocompletion=completion.backends)
    ] = "dask"
    gpus: Annotated[
        int | None, typer.Option(min=1, help="A worker on each of this many GPUs of a node; NVML must know them.")
    ] = None
    cpus: Annotated[
        int | None, typer.Option(min=1, help="As many workers of a node, one CPU each; with --threads fewer workers.")
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
            "defaults where nothing is held); --set wins."
        ),
    ] = None
    reps: options.Reps = None
    warmup: Annotated[int | None, typer.Option(min=0, help="Repetitions before the first that counts.")] = None
    scheduler_file: Annotated[
        Path | None, typer.Option(help="On the running cluster whose scheduler wrote this file; it is left as it was.")
    ] = None
    scheduler_address: Annotated[
        str | None, typer.Option(help="On the running cluster with this scheduler, like tcp://10.0.0.1:8786.")
    ] = None
    python: Annotated[
        Path | None,
        typer.Option(help="For a running cluster: a Python with its versions; default: that of the site's image."),
    ] = None
    site: options.Site = "local"
    ucx: options.OneVariant = None
    protocol: options.Protocol = None
    runtime: options.Runtime = None
    base: options.Base = None
    date: options.Date = None
    seed: options.Seed = None
    outputs: options.Outputs = None
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; progress goes to standard error.")] = False
