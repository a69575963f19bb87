"""Where jobs go: one module each, named in the one dict."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from gpubench.schedulers import local


class Job(Protocol):
    """A job that was submitted."""

    def ended(self) -> bool:
        """Whether it neither waits nor runs."""

    def cancel(self) -> None:
        """Ask it to end."""

    def close(self) -> int:
        """Come back when it has ended; its exit code."""


class Scheduler(Protocol):
    """An adapter to a scheduler."""

    @property
    def HERE(self) -> bool:  # noqa: N802 - a module's constant
        """Whether jobs run on this very machine."""

    def turn(self, job_dir: Path, waiting: Callable[[str], None]) -> contextlib.AbstractContextManager[int]:
        """Wait for the machine."""

    def submit(self, job_dir: Path, environ: Mapping[str, str], hold: int) -> Job:
        """Hand over ``job_dir/job.sh``; raises SchedulerError when it is refused."""

    def alive(self, job_dir: Path) -> bool:
        """Whether the job that was last submitted from ``job_dir`` waits or runs."""

    def cancel(self, job_dir: Path) -> None:
        """End it, and come back when it has ended."""


SCHEDULERS: dict[str, Scheduler] = {
    "local": local,
}
