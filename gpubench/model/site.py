"""A site profile: everything that a machine fixes, as data."""

from __future__ import annotations

from typing import Literal

import pydantic

from gpubench.model.base import Settings
from gpubench.model.quantities import Bytes, Fraction, Seconds


class Layout(Settings):
    """Processes per node.

    ``memory`` is what all workers of a node may use together; unset: half of the node's. ``one_machine`` says that all
    nodes of a job are this one machine, so that they share its cores and its memory.
    """

    workers: int = pydantic.Field(ge=1)
    threads: int = pydantic.Field(default=1, ge=1)
    memory: Bytes | None = None
    one_machine: bool = False


class Paths(Settings):
    """Where things live; ``~`` and ``$VARIABLES`` are resolved by the front end, unset means the user's own default."""

    images: str = ""
    outputs: str = "outputs"


class Limits(Settings):
    """How long each wait may take at most. ``job`` is one allocation's time limit."""

    job: Seconds = 4 * 3600.0
    start: Seconds = 120.0
    stop: Seconds = 30.0
    silence: Seconds = 20.0
    workload: Seconds = 300.0


class Estimates(Settings):
    """The time model before this site has a history: seconds outside the workloads, and of one workload."""

    run: Seconds = 10.0
    workload: Seconds = 3.0


class Defaults(Settings):
    """What a command uses when the user names nothing else."""

    variants: list[str] = pydantic.Field(default_factory=list)
    suite: str = "quick"
    nodes: list[pydantic.PositiveInt] = pydantic.Field(default_factory=lambda: [1], min_length=1)
    blocks: int = pydantic.Field(default=8, ge=1)
    budget: Seconds | None = None
    margin: Fraction = 0.03


class Site(Settings):
    """One machine as ``sites/<name>.toml`` describes it.

    ``env`` is set in every process of a run, under every variant. ``expect_transport`` are the transports that UCX may
    use here; a run that used another one is failed. ``env_allow`` names what a run may inherit from the shell.
    """

    name: str
    description: str = ""
    scheduler: str
    launcher: str
    runtime: str
    device: Literal["auto", "cpu", "gpu"] = "auto"
    protocol: str = "ucx"
    interface: str
    layout: Layout
    env: dict[str, str] = pydantic.Field(default_factory=dict)
    env_allow: list[str] = pydantic.Field(default_factory=list)
    expect_transport: list[str] = pydantic.Field(default_factory=list)
    paths: Paths = Paths()
    limits: Limits = Limits()
    estimates: Estimates = Estimates()
    defaults: Defaults = Defaults()
