"""Options of a campaign, and of one measurement: the same words for the command line, make and a Python prompt.

An option is declared once: its name, type, default and help. The command line makes its parameters of the fields.
"""

import dataclasses
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import typer

from gpubench.errors import UsageError
from gpubench.model.bounds import MOST_REPS

Site = Annotated[str, typer.Option(help="Profile in sites/, or a .toml file.")]
OneVariant = Annotated[str | None, typer.Option(help="VERSION[,KEY=VALUE...]; default: the first variant of the site.")]
Reps = Annotated[int | None, typer.Option(min=1, max=MOST_REPS, help="Timed repetitions of every workload.")]
Protocol = Annotated[str | None, typer.Option(help="tcp or ucx.")]
Runtime = Annotated[str | None, typer.Option(help="How runs enter their image: {gpubench.runtimes.RUNTIMES}.")]
Base = Annotated[str | None, typer.Option(help="Image that container builds start from; default: the profile's.")]
Date = Annotated[str | None, typer.Option(help="Images of that day; default: the newest in images.lock.toml.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the order; the same seed gives the same order.")]
Margin = Annotated[str | None, typer.Option(help="Margin: differences up to this do not matter, like 3%.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Any key of the site profile, dotted, like launcher=ssh; repeatable.")
]
AllowUnknownEnv = Annotated[
    bool, typer.Option("--allow-unknown-env", help="Also set variables that no known library reads.")
]
Outputs = Annotated[
    Path | None, typer.Option(help="Where campaigns live; default: outputs/, for new ones the folder of the profile.")
]


def option_name(field: str) -> str:
    """As it is typed: ``--set`` for ``settings``."""
    return {"settings": "--set", "packages": "--with"}.get(field, f"--{field.replace('_', '-')}")


@dataclasses.dataclass(frozen=True)
class CampaignOptions:
    """The options of a campaign; None for an option that was not given."""

    site: Site = "local"
    ucx: Annotated[
        str | None, typer.Option(help="UCX versions, separated by commas or blanks; the first is the baseline.")
    ] = None
    variants: Annotated[
        str | None,
        typer.Option(
            help="[LABEL=]VERSION[,PACKAGE==VERSION...][,KEY=VALUE...], separated by blanks; the first is the baseline."
        ),
    ] = None
    packages: Annotated[
        list[str] | None,
        typer.Option("--with", help="Version of a Python package, in every variant that names none of it; repeatable."),
    ] = None
    nodes: Annotated[str | None, typer.Option(help="Node counts, separated by commas or blanks.")] = None
    suite: Annotated[str | None, typer.Option(help="Suite in suites/, or a .toml file; default: the profile's.")] = None
    workloads: Annotated[
        str | None, typer.Option(help="Of the suite only these, by name, separated by commas or blanks.")
    ] = None
    blocks: Annotated[
        str | None,
        typer.Option(
            help="This many blocks, with --budget at most; +N with bench --campaign: N more blocks. Not for bisect."
        ),
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(help="Time budget, like 10m: plan as many blocks as fit; bisect takes no further step beyond it."),
    ] = None
    reps: Reps = None
    workers: Annotated[str | None, typer.Option(help='Workers per node: "2", or a sweep: "1 2 4".')] = None
    protocol: Protocol = None
    runtime: Runtime = None
    base: Base = None
    date: Date = None
    seed: Seed = None
    margin: Margin = None
    settings: Set = None
    allow_unknown_env: AllowUnknownEnv = False
    outputs: Outputs = None

    def __post_init__(self) -> None:
        """See that each value is what its option takes, as the command line does; raises UsageError."""
        for field in dataclasses.fields(self):
            _check(field.name, getattr(self, field.name), field.type)


@dataclasses.dataclass(frozen=True)
class MeasureOptions:
    """The options of a measurement; None for an option that was not given."""

    workload: Annotated[
        str, typer.Argument(help="As `gpubench suites list` names it, or yours: FILE.py:NAME.", show_default=False)
    ]
    backend: Annotated[str, typer.Option(help="Which of the workload's backends measures.")] = "dask"
    gpus: Annotated[int | None, typer.Option(min=1, help="GPUs of a node, one worker on each.")] = None
    cpus: Annotated[int | None, typer.Option(min=1, help="CPUs of a node, one to each thread of a worker.")] = None
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


def _check(name: str, value: Any, declared: Any) -> None:
    kind, option = get_args(declared)[:2]
    kinds = [part for part in get_args(kind) or (kind,) if part is not NoneType]
    if value is None and NoneType in get_args(kind):
        return
    if get_origin(kinds[0]) is list:
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        fits = isinstance(value, kinds[0]) or (kinds[0] is float and isinstance(value, int))
        fits = fits and isinstance(value, bool) == (kinds[0] is bool)
    if not fits:
        word = getattr(kinds[0], "__name__", "list")
        kind = "a list of str" if word == "list" else word
        raise UsageError(f"option {name} = {value!r}: it takes {kind}", then="write it as on the command line")
    least, most = option.min, option.max
    if (least is not None and value < least) or (most is not None and value > most):
        raise UsageError(f"option {name} = {value!r} is not within {least} to {most}")
