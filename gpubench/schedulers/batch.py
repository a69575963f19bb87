"""What all batch schedulers share: a submit command, a queue, and job scripts that leave their exit code in a file.

Client commands of a scheduler, and the environment that a job gets of the shell that submits it.

No command runs without a time limit: with a dead controller they hang for minutes.
"""

import abc
import dataclasses
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gpubench.errors import MissingToolError, SchedulerError, UsageError
from gpubench.polling import poll_until
from gpubench.schedulers import submitted
from gpubench.schedulers.state import JobState, with_log

STOPPED = 130
"""Exit code of a script that heard a signal and ended in order."""


@dataclasses.dataclass(frozen=True)
class Allocation:
    """Nodes that the scheduler has given to this shell already.

    Args:
        job_id: the scheduler's.
        nodes: how many it holds.
        count_variables: in which the scheduler tells a job script how many nodes it has.
        log: name of the file for what the script prints, as if the scheduler had started it.
        exit_code_file: name of the file into which the script writes its exit code.
    """

    job_id: str
    nodes: int
    count_variables: tuple[str, ...]
    log: str
    exit_code_file: str


class BatchScheduler(abc.ABC):
    """A scheduler whose jobs are scripts that wait in a queue and run where the nodes see the campaign's directory.

    A subclass names its commands and reads their answers. The order of the steps, and what happens when one of them
    fails, is the same for all.
    """

    NAME: str
    """In profiles; begins the names of the jobs' logs, too."""
    TITLE: str
    """In messages."""
    SUBMIT: str
    ALLOCATE: str
    KILL: str
    LIST: str
    LOOK: str
    """Words with which a person looks at the job ``{job_id}``."""
    OF_A_JOB: tuple[str, ...]
    """How the names of variables begin that belong to a job around this shell: the new job doesn't get them."""
    PASSED_ON: tuple[str, ...] = ()
    """Exceptions: names that the new job does get."""
    ONE_AT_A_TIME = False
    FORGETS_ONLY_ENDED = True
    """Whether a job that the scheduler doesn't know has surely ended."""
    CANCEL_S = 60.0

    @abc.abstractmethod
    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """Run the submit command with ``environ``, in which no variable of another job is left."""

    @abc.abstractmethod
    def submitted_id(self, done: subprocess.CompletedProcess[str]) -> str:
        """The id of the new job in the submit command's answer; empty where there is none.

        Raises:
            SchedulerError: the answer doesn't tell whether it was accepted.
        """

    @abc.abstractmethod
    def query(self, job_id: str) -> JobState | None:
        """What the scheduler says of a job; None where it doesn't know it.

        Raises:
            SchedulerError: it doesn't answer.
            MissingToolError: it isn't on this machine.
        """

    @abc.abstractmethod
    def find(self, job_dir: Path) -> str:
        """The id of this user's newest job that was submitted from ``job_dir`` (absolute); empty where there is none.

        Raises:
            SchedulerError: the scheduler doesn't answer.
        """

    @abc.abstractmethod
    def current_allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """See ``QueuedScheduler``."""

    def count_nodes(self, queue: str) -> tuple[int, int]:  # noqa: ARG002 - most can't
        """Nodes of a queue (empty: the default one) that take jobs, and those that don't.

        Raises:
            UsageError: this scheduler's nodes aren't counted.
            SchedulerError: it doesn't answer, or has no such queue.
            MissingToolError: it isn't on this machine.
        """
        raise UsageError(f"the nodes of {self.TITLE} aren't counted", then="say how many: --nodes N")

    def dependencies(self, after: Sequence[str]) -> Sequence[str]:
        """The jobs of ``after`` that the submit command can be given; raises SchedulerError, MissingToolError."""
        return after

    def check(self, job_dir: Path) -> None:  # noqa: B027 - most schedulers take any directory
        """Raise UsageError where the scheduler can't run jobs in ``job_dir``."""

    def cancel_timeout(self, now: JobState) -> SchedulerError:
        """The error of a job that hasn't ended CANCEL_S seconds after the kill command."""
        return SchedulerError(
            f"job {now.job_id} still runs {self.CANCEL_S:g} s after {self.KILL}",
            then=f"inspect it: {self.LOOK.format(job_id=now.job_id)}",
        )

    def log(self, job_id: str) -> str:
        """Name of the file in the job's directory for what the script prints."""
        return f"{self.NAME}-{_number(job_id)}.log"

    def exit_code_file(self, job_id: str) -> str:
        """Name of the file in the job's directory into which the script writes its exit code."""
        return f"end-{_number(job_id)}"

    def allocation(self, job_id: str, nodes: int, count_variables: tuple[str, ...] = ()) -> Allocation:
        """``nodes`` nodes that the job ``job_id`` holds; see ``Allocation``."""
        return Allocation(job_id, nodes, count_variables, self.log(job_id), self.exit_code_file(job_id))

    def submit(self, job_dir: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:
        """See ``QueuedScheduler.submit``."""
        self.check(job_dir)
        dependencies = self.dependencies(after)
        env = {key: environ[key] for key in environ if key in self.PASSED_ON or not key.startswith(self.OF_A_JOB)}
        name, before = submitted.job_name(job_dir), submitted.read(job_dir)
        submitted.write(job_dir, self.NAME, name)
        try:
            done = self.run_submit(job_dir, name, env, dependencies)
        except MissingToolError:  # after any other failure it may have been submitted: `state` finds out
            submitted.restore(job_dir, before)
            raise
        job_id = self.submitted_id(done)
        if not job_id:
            submitted.restore(job_dir, before)
            raise SchedulerError(
                f"{self.SUBMIT} refuses job {name}: {said(done)}", then=f"the script is {job_dir / 'job.sh'}"
            )
        submitted.write(job_dir, self.NAME, name, job_id)
        return job_id

    def state(self, job_dir: Path) -> JobState:
        """See ``Scheduler.state``."""
        found = self._found(job_dir)
        return with_log(found, job_dir / self.log(found.job_id))

    def cancel(self, job_dir: Path) -> None:
        """The kill command, then wait for the end; see ``Scheduler.cancel``."""
        now = self.state(job_dir)
        if not now.alive:
            return
        kill = [self.KILL, now.job_id]
        entry = submitted.read(job_dir)
        if entry is not None and entry.here:
            raise SchedulerError(
                f"job {job_dir.name} runs inside the allocation {now.job_id}, where other work may run too",
                then=f"press Ctrl-C where 'gpubench submit --here' runs, or give up the allocation: {' '.join(kill)}",
            )
        done = call(kill)
        if done.returncode and self.state(job_dir).alive:
            raise SchedulerError(f"{' '.join(kill)} failed: {said(done)}")
        now = poll_until(
            lambda: self.state(job_dir),
            lambda now: not now.alive,
            interval_s=0.5,
            timeout_s=self.CANCEL_S,
            growth=1.5,  # a busy controller isn't asked twice a second for a minute
            longest_s=3.0,
        )
        if now.alive:
            raise self.cancel_timeout(now)

    def no_answer(self, words: str, done: subprocess.CompletedProcess[str]) -> SchedulerError:
        """The error of a client command that failed."""
        return SchedulerError(f"{words} failed: {said(done)}", then=f"is {self.TITLE} up? try again later")

    def _found(self, job_dir: Path) -> JobState:
        entry = submitted.read(job_dir)
        if entry is None:
            return JobState("unsubmitted")
        try:
            if entry.here:  # the allocation lives on when the script has ended
                ended = self._by_exit_code_file(job_dir, entry.job_id)
                return ended if ended.phase == "ended" else self.query(entry.job_id) or ended
            job_id = entry.job_id or self.find(job_dir.resolve())
            if not job_id:
                return JobState(
                    "unknown", reason=f"the front end ended while it submitted the job; {self.LIST} knows none here"
                )
            return self.query(job_id) or self._forgotten(job_dir, job_id)
        except MissingToolError:
            return self._by_exit_code_file(job_dir, entry.job_id)

    def _forgotten(self, job_dir: Path, job_id: str) -> JobState:
        ended = self._by_exit_code_file(job_dir, job_id)
        if ended.phase == "ended":
            return ended
        reason = f"{self.TITLE} doesn't know the job, and the job left no exit code"
        if self.FORGETS_ONLY_ENDED:
            return JobState("ended", "VANISHED", reason, None, job_id)
        return JobState("unknown", reason=reason, job_id=job_id)

    def _by_exit_code_file(self, job_dir: Path, job_id: str) -> JobState:
        try:
            code = int((job_dir / self.exit_code_file(job_id)).read_text("ascii"))
        except (OSError, ValueError):
            reason = f"there is no {self.TITLE} here to ask, and the job left no exit code"
            return JobState("unknown", reason=reason, job_id=job_id)
        return JobState("ended", "COMPLETED" if code == 0 else "FAILED", exit_code=code, job_id=job_id)


def _number(job_id: str) -> str:
    """Of a job that is named with its server: ``123.server``."""
    return job_id.partition(".")[0]


DEADLINE_S = 30.0
OURS = "GPUBENCH_"
"""Begins every name by which a script, or what it starts, can be told something else than the plan says."""
BLOCKS = "GPUBENCH_BLOCKS"
BUDGET = "GPUBENCH_BUDGET"
OVER_BUDGET = "no time left in the budget"
"""How the reason of a run begins whose block the script didn't begin for that."""


def call(
    words: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a client command with ``text`` as its input; its exit code is the caller's to judge.

    Raises:
        MissingToolError: the command isn't installed here.
        SchedulerError: it didn't answer within DEADLINE_S seconds.
    """
    try:
        return subprocess.run(
            list(words),
            env=dict(os.environ if env is None else env),
            cwd=cwd,
            input=text or "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except (FileNotFoundError, PermissionError):  # also a folder of PATH that we may not look into
        raise MissingToolError(
            f"there is no {words[0]} on this machine", then="run it on a login node of the site"
        ) from None
    except subprocess.TimeoutExpired:
        raise SchedulerError(
            f"{words[0]} didn't answer within {DEADLINE_S:g} s", then="is the controller up? try again later"
        ) from None


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What the command said, on one line."""
    return " ".join((done.stderr or done.stdout).split())[:300] or f"exit code {done.returncode}"


def inherited(
    environ: Mapping[str, str], blocks: Iterable[int] | None = None, budget_s: float | None = None
) -> dict[str, str]:
    """All of it but the names that are ours: those are for who starts a script by hand.

    Args:
        environ: of this process.
        blocks: numbers of those that the script shall run; None: all.
        budget_s: seconds from the script's start in which they have to end, None: no bound.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(OURS)}
    if blocks is not None:
        kept[BLOCKS] = " ".join(map(str, blocks))
    if budget_s is not None:
        kept[BUDGET] = str(max(0, int(budget_s)))
    return kept
