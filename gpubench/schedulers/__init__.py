"""Where jobs go: one module each, named in the dicts."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from gpubench.schedulers import kubernetes, local
from gpubench.schedulers.batch import Allocation
from gpubench.schedulers.lsf import Lsf
from gpubench.schedulers.pbs import Pbs
from gpubench.schedulers.slurm import Slurm
from gpubench.schedulers.state import JobState


class Scheduler(Protocol):
    def state(self, job_dir: Path) -> JobState:
        """How the job that was last submitted from ``job_dir`` stands; raises SchedulerError, MissingToolError."""

    def cancel(self, job_dir: Path) -> None:
        """End it, and come back when it has ended; nothing where it has.

        Raises:
            SchedulerError: it can't be ended, or whether it has ended is unknown.
        """

    def declare_ended(self, job_dir: Path) -> None:
        """Keep for ever that this user says now that the job has ended: believed where its state is unknown."""


class LocalScheduler(Scheduler, Protocol):
    """Jobs live on this machine, and no longer than the front end that submitted them."""

    def acquire_machine(
        self, job_dir: Path, waiting: Callable[[str], None], ended_by: str = ""
    ) -> contextlib.AbstractContextManager[int]:
        """Wait until no other job of this user runs on this machine; yields the lock for ``submit``.

        Args:
            job_dir: says to others who holds the machine.
            waiting: called with the holder's words about every second while waiting.
            ended_by: the command that ends this holder, for others to read; else they read this process's number.
        """

    def submit(self, job_dir: Path, environ: Mapping[str, str], lock: int | None) -> local.Job:
        """Start ``job_dir/job.sh`` with this environment; ``lock`` is None for a job that joins one which holds it.

        Raises:
            SchedulerError: it can't be started.
        """


class QueuedScheduler(Scheduler, Protocol):
    """Jobs wait in a queue and run without the front end.

    ``SUBMIT`` is the command that a submit needs, ``ALLOCATE`` the words with which a user gets ``{nodes}`` nodes.
    Jobs of one campaign that go there wait for each other where it is ``ONE_AT_A_TIME``.
    """

    SUBMIT: str
    ALLOCATE: str
    ONE_AT_A_TIME: bool

    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """The allocation that a process with these variables runs in; None where it is in none."""

    def submit(self, job_dir: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:
        """Hand over the job in ``job_dir``, to start when the jobs ``after`` have ended, well or not; returns its id.

        Raises:
            SchedulerError: it is refused.
            MissingToolError: this machine has no such scheduler.
        """


class Polled(Protocol):
    """A scheduler that needs periodic calls of the front end while jobs wait or run."""

    def poll(self, job_dirs: Sequence[Path], *, submit_next: bool) -> None:
        """Fetch results of the jobs of one campaign; with ``submit_next`` submit the next one that is due.

        Raises:
            SchedulerError: the scheduler refuses or doesn't answer.
        """


class Retained(Protocol):
    """A scheduler that keeps the objects of a job that has ended until somebody deletes them."""

    def remove(self, job_dir: Path) -> None:
        """Fetch the logs, then delete the objects; nothing where nothing was submitted.

        Raises:
            SchedulerError: the scheduler refuses or doesn't answer.
        """


LOCAL: dict[str, LocalScheduler] = {"local": local}
BATCH: dict[str, QueuedScheduler] = {"kubernetes": kubernetes, "lsf": Lsf(), "pbs": Pbs(), "slurm": Slurm()}
RETAINED: dict[str, Retained] = {"kubernetes": kubernetes}
POLLED: dict[str, Polled] = {"kubernetes": kubernetes}
SCHEDULERS: dict[str, Scheduler] = {**LOCAL, **BATCH}

__all__ = [
    "BATCH",
    "LOCAL",
    "POLLED",
    "RETAINED",
    "SCHEDULERS",
    "Allocation",
    "JobState",
    "LocalScheduler",
    "QueuedScheduler",
    "Scheduler",
]
