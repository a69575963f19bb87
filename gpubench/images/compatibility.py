"""Which Python stack carries which UCX: the table ``docker/compatibility.toml``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

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
        """Whether ``release`` lies inside."""
        return version_key(self.min) <= version_key(release) <= version_key(self.max)

    def __str__(self) -> str:
        return f"{self.min} to {self.max}"


class UcxRange(Range):
    """What really runs; ``declared`` is the binding's own, narrower pin; ``tested`` are releases that moved data."""

    declared: str
    tested: list[str]


class Stack(Settings):
    """One row: a Python stack without UCX, locked. ``source`` says why we believe the row."""

    name: str
    binding: str
    binding_version: str
    dask: str
    rapids: str
    lock: str
    scheme: str
    python: Range
    ucx: UcxRange
    source: str

    @property
    def lock_file(self) -> Path:
        """The hashed lock of the stack's packages."""
        return docker_file(self.lock)


class _Table(Settings):
    stack: list[Stack] = pydantic.Field(min_length=1)


@functools.cache
def stacks() -> tuple[Stack, ...]:
    """The table's rows in order of preference."""
    path = docker_file(_TABLE)
    return tuple(_Table.load(path.read_text("utf-8"), str(path)).stack)


def choose(wanted: Sequence[Wheel], table: Sequence[Stack] | None = None) -> Stack:
    """The first stack that can run every wheel of ``wanted``: one campaign, one stack.

    Raises:
        PlanRefusedError: a release that no stack runs (names the nearest that one can), or no stack for all together.
    """
    rows = stacks() if table is None else table
    for stack in rows:
        if all(stack.ucx.holds(wheel.release) for wheel in wanted):
            return stack
    can = "; ".join(f"stack {stack.name} runs UCX {stack.ucx}" for stack in rows)
    for wheel in wanted:
        if not any(stack.ucx.holds(wheel.release) for stack in rows):
            raise PlanRefusedError(
                f"no Python stack runs UCX {wheel.release} ({can})", then=f"nearest: {_nearest(wheel, rows)}"
            )
    raise PlanRefusedError(
        f"no Python stack runs UCX {', '.join(wheel.release for wheel in wanted)} together ({can})",
        then="compare versions that share a stack: with two stacks UCX isn't the only thing that differs",
    )


def _nearest(wheel: Wheel, rows: Sequence[Stack]) -> str:
    runnable = [release for release in releases() if any(stack.ucx.holds(release) for stack in rows)]
    newer = [release for release in runnable if version_key(release) > version_key(wheel.release)]
    return newer[0] if newer else runnable[-1]
