"""The options that plan a campaign, written once for every command that takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gpubench.cli import options
from gpubench.cli.options import Asked


def planning_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that plan a campaign; it gets them as the one argument ``asked``."""
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(_read, eval_str=True).parameters

    def wrapper(**given: Any) -> None:
        asked = _read(**{name: given.pop(name) for name in shared})
        command(asked=asked, **given)

    kept = [each for name, each in own.items() if name != "asked"]
    parameters = [*kept, *shared.values()]
    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    # typer reads options from a function's signature and annotations.
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapper


def _read(
    *,
    site: options.Site = "local",
    ucx: options.Ucx = None,
    variants: options.Variants = None,
    nodes: options.Nodes = None,
    suite: options.SuiteName = None,
    blocks: options.Blocks = None,
    budget: options.Budget = None,
    reps: options.Reps = None,
    workers: options.Workers = None,
    protocol: options.Protocol = None,
    runtime: options.Runtime = None,
    arrangement: options.Arrangement = None,
    base: options.Base = None,
    date: options.Date = None,
    seed: options.Seed = None,
    margin: options.Margin = None,
    summary: options.Summary = None,
    adaptive: options.Adaptive = False,
    max_blocks: options.MaxBlocks = 12,
    power: options.Power = None,
    settings: options.Set = None,
    allow_unknown_env: options.AllowUnknownEnv = False,
    outputs: options.Outputs = None,
) -> Asked:
    return Asked(
        site=site,
        ucx=ucx,
        variants=variants,
        nodes=nodes,
        suite=suite,
        blocks=blocks,
        budget=budget,
        reps=reps,
        workers=workers,
        protocol=protocol,
        runtime=runtime,
        arrangement=arrangement,
        base=base,
        date=date,
        seed=seed,
        margin=margin,
        summary=summary,
        max_blocks=max_blocks if adaptive else None,
        power=power,
        settings=settings,
        allow_unknown_env=allow_unknown_env,
        outputs=outputs,
    )
