"""Which Python stack carries which UCX: the table ``docker/compatibility.toml``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pydantic

from gpubench.errors import PlanRefusedError
from gpubench.images.specs import Wheel, releases, version_key
from gpubench.model.base import Settings
from gpubench.resources import docker_file

_TABLE = "compatibility.toml"


class Range(Settings):
    """Versions from ``min`` to ``max``, both included."""

    min: str
    max: str

    def holds(self, release: str) -> bool:
        """Whether ``release`` lies inside; ``1.14`` stands for all of 1.14, and lies inside where one of them does."""
        key = version_key(release)
        low, high = (version_key(end)[: len(key)] for end in (self.min, self.max))
        return low <= key <= high

    def __str__(self) -> str:
        return self.min if self.min == self.max else f"{self.min} to {self.max}"


class SupportedUcx(Range):
    """What really runs; ``declared`` is the binding's own, narrower pin; ``tested`` are releases that moved data.

    ``unreleased``: branches without a number (``master``) are tried too; the build shows whether they work.
    """

    declared: str
    tested: list[str] = pydantic.Field(default_factory=list)
    unreleased: bool = False


class Sets(Settings):
    """``variable`` = ``value``, set by the binding itself where the UCX that it finds is older than ``below``."""

    variable: str
    value: str
    below: str
    source: str


class Event(Settings):
    """``env`` makes processes that wait for messages sleep; ``source`` says why we believe that they don't hang."""

    env: dict[str, str]
    source: str


class Stack(Settings):
    """One row: a Python stack without UCX, locked. ``source`` says why we believe the row.

    Args:
        packages: ``wheels`` from a hashed lock, or ``conda`` with exact versions.
        architectures: for which the packages exist, as ``uname -m`` says it.
        cuda: releases that the packages run on; None: they hold nothing of CUDA.
        compute_capability: the least that the packages run on; empty: they hold nothing of CUDA.
        ucx: None: no binding, so no UCX.
        sets: what the binding sets on its own.
        event: how its processes wait without polling; None: they can't, or not reliably.
    """

    name: str
    packages: Literal["wheels", "conda"] = "wheels"
    binding: str
    binding_version: str = ""
    dask: str
    rapids: str = ""
    lock: str
    scheme: str
    python: Range
    architectures: list[str]
    cuda: Range | None = None
    compute_capability: str = ""
    ucx: SupportedUcx | None = None
    sets: list[Sets] = pydantic.Field(default_factory=list)
    event: Event | None = None
    source: str

    @property
    def lock_file(self) -> Path:
        """The lock of the stack's packages."""
        return docker_file(self.lock)

    def runs(self, release: str) -> bool:
        """Whether this stack runs a UCX release."""
        return self.ucx is not None and self.ucx.holds(release)


class Dropped(Settings):
    """CUDA releases after ``cuda_max`` don't run on GPUs below ``below``."""

    below: str
    cuda_max: str
    source: str


class _Table(Settings):
    dropped: list[Dropped]
    stack: list[Stack] = pydantic.Field(min_length=1)


@functools.cache
def _table() -> _Table:
    path = docker_file(_TABLE)
    return _Table.load(path.read_text("utf-8"), str(path))


def stacks() -> tuple[Stack, ...]:
    """The table's rows in order of preference."""
    return tuple(_table().stack)


def newest_cuda(driver: str, compute_capability: str) -> str:
    """The newest CUDA release for a driver that runs ``driver`` at most and such GPUs; empty without CUDA."""
    ends = [driver] if driver else []
    if ends and compute_capability:
        ends += [row.cuda_max for row in _table().dropped if version_key(compute_capability) < version_key(row.below)]
    return min(ends, key=version_key, default="")


def choose(wanted: Sequence[Wheel], table: Sequence[Stack] | None = None) -> Stack:
    """The first stack of wheels that can run every wheel of ``wanted``: one campaign, one stack.

    Raises:
        PlanRefusedError: a release that no stack runs (names the nearest that one can), or no stack for all together.
    """
    rows = [row for row in (stacks() if table is None else table) if row.packages == "wheels" and row.ucx is not None]
    for stack in rows:
        if all(stack.runs(wheel.release) for wheel in wanted):
            return stack
    can = "; ".join(f"stack {stack.name} runs UCX {stack.ucx}" for stack in rows)
    for wheel in wanted:
        if not any(stack.runs(wheel.release) for stack in rows):
            raise PlanRefusedError(
                f"no Python stack runs UCX {wheel.release} ({can})",
                then=f"nearest: {nearest_release(wheel.release, rows)}",
            )
    raise PlanRefusedError(
        f"no Python stack runs UCX {', '.join(wheel.release for wheel in wanted)} together ({can})",
        then="compare versions that share a stack: with two stacks UCX isn't the only thing that differs",
    )


def nearest_release(release: str, rows: Sequence[Stack]) -> str:
    """The release nearest to ``release`` (upwards first) that one of ``rows`` runs."""
    ends = {end for row in rows if row.ucx for end in (row.ucx.min, row.ucx.max)}
    runnable = sorted(
        {known for known in {*releases(), *ends} if any(row.runs(known) for row in rows)}, key=version_key
    )
    newer = [known for known in runnable if version_key(known) > version_key(release)]
    return newer[0] if newer else runnable[-1]
