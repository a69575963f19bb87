"""Where jobs go: one module each, named in the dicts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from gpubench.schedulers import kubernetes, local
from gpubench.schedulers.allocation import Allocation
from gpubench.schedulers.lsf import Lsf
from gpubench.schedulers.pbs import Pbs
from gpubench.schedulers.slurm import Slurm
from gpubench.schedulers.state import JobState


class Scheduler(Protocol):
    """What every scheduler can be asked."""

    def state(self, job_dir: Path) -> JobState:
        """How the job that was last submitted from ``job_dir`` stands; raises SchedulerError, MissingToolError."""

    def cancel(self, job_dir: Path) -> None:
        """End it, and come back when it has ended; nothing where it has."""


class Running(Protocol):
    """A job whose queue is this very process."""

    def ended(self) -> bool:
        """Whether it neither waits nor runs."""

    def cancel(self) -> None:
        """Ask it to end."""

    def close(self) -> int:
        """Come back when it has ended; its exit code."""


class Attached(Scheduler, Protocol):
    """Jobs live on this machine, and no longer than the front end that submitted them."""

    def turn(self, job_dir: Path, waiting: Callable[[str], None]) -> contextlib.AbstractContextManager[int]:
        """Wait for the machine."""

    def submit(self, job_dir: Path, environ: Mapping[str, str], hold: int | None) -> Running:
        """Start ``job_dir/job.sh``; ``hold`` is the turn, None for a job that joins one which has it.

        Raises:
            SchedulerError: it can't be started.
        """


class Detached(Scheduler, Protocol):
    """Jobs wait in a queue and run when nobody looks.

    ``SUBMIT`` is the command that a submit needs, ``ALLOCATE`` the words with which a user gets ``{nodes}`` nodes.
    Jobs of one campaign that go there wait for each other where it is ``ONE_AT_A_TIME``.
    """

    SUBMIT: str
    ALLOCATE: str
    ONE_AT_A_TIME: bool

    def held(self, environ: Mapping[str, str]) -> Allocation | None:
        """The allocation that a process with these variables runs in; None where it is in none."""

    def submit(self, job_dir: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:
        """Hand over the job in ``job_dir``, to start when the jobs ``after`` have ended, well or not; returns its id.

        Raises:
            SchedulerError: it is refused.
            MissingToolError: this machine has no such scheduler.
        """


class Tended(Protocol):
    """A scheduler that leaves something to the front end while jobs wait or run."""

    def tend(self, job_dirs: Sequence[Path], *, hand_over: bool) -> None:
        """Fetch results of the jobs of one campaign, and where ``hand_over`` says so let the next of them begin.

        Raises:
            SchedulerError: the scheduler refuses or doesn't answer.
        """


class Retained(Protocol):
    """A scheduler that keeps what there is of a job that has ended."""

    def remove(self, job_dir: Path) -> None:
        """Take it away, with the logs brought home before; nothing where nothing was submitted.

        Raises:
            SchedulerError: the scheduler refuses or doesn't answer.
        """


ATTACHED: dict[str, Attached] = {"local": local}
DETACHED: dict[str, Detached] = {"kubernetes": kubernetes, "lsf": Lsf(), "pbs": Pbs(), "slurm": Slurm()}
KEPT: dict[str, Retained] = {"kubernetes": kubernetes}
TENDED: dict[str, Tended] = {"kubernetes": kubernetes}
SCHEDULERS: dict[str, Scheduler] = {**ATTACHED, **DETACHED}

__all__ = [
    "ATTACHED",
    "DETACHED",
    "KEPT",
    "SCHEDULERS",
    "TENDED",
    "Allocation",
    "Attached",
    "Detached",
    "JobState",
    "Retained",
    "Running",
    "Scheduler",
]
