"""What all batch schedulers share: a submit command, a queue, and job scripts that leave their exit code in a file.

Client commands of a scheduler, and the environment that a job gets of the shell that submits it.

No command runs without a time limit: with a dead controller they hang for minutes.
"""

import abc
import contextlib
import dataclasses
import math
import os
import re
import secrets
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gpubench.errors import InterruptedByUserError, MissingToolError, SchedulerError, UsageError
from gpubench.plan.node_kinds import NodeKind
from gpubench.polling import poll_until
from gpubench.schedulers import submitted
from gpubench.schedulers.state import JobState, declared, with_log
from gpubench.schedulers.submitted import Submitted

STOPPED = InterruptedByUserError.exit_code
"""Exit code of a script that heard a signal and ended in order."""
VANISHED = "VANISHED"
"""Our word for the end of a job that its scheduler has forgotten, and that left no exit code."""


class Accepted(NamedTuple):
    """A job that the scheduler has taken; ``cluster`` is empty where the answer names none."""

    job_id: str
    cluster: str = ""


@dataclasses.dataclass(frozen=True)
class Allocation:
    """Nodes that the scheduler has given to this shell already.

    Args:
        job_id: the scheduler's.
        nodes: how many it holds.
        count_variables: in which the scheduler tells a job script how many nodes it has.
        log: name of the file for what the script prints, as if the scheduler had started it.
        exit_code_file: name of the file into which the script writes its exit code.
        cluster: which of the scheduler's it belongs to; empty where that isn't known.
    """

    job_id: str
    nodes: int
    count_variables: tuple[str, ...]
    log: str
    exit_code_file: str
    cluster: str = ""


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
    LIST: str
    QUEUE = "queue"
    """What a job waits in, in the scheduler's word."""
    LOOK: str
    """Words with which a person looks at the job ``{job_id}``."""
    OF_A_JOB: tuple[str, ...]
    """How the names of variables begin that belong to a job around this shell: the new job doesn't get them."""
    PASSED_ON: tuple[str, ...] = ()
    """Exceptions: names that the new job does get."""
    OF_QUERIES: tuple[str, ...] = ()
    """How the names of further variables begin that change what a client asks, or how it answers."""
    IDS: tuple[re.Pattern[str], ...]
    """Forms of a new job's id in the submit command's answer, surest first: groups ``id``, and maybe ``cluster``."""
    UNCLEAR_ANSWERS: tuple[str, ...]
    """What the submit command says when the job may have been accepted, although it failed."""
    ONE_AT_A_TIME = False
    CANCEL_S = 60.0
    SEARCH_S = 10.0
    """Seconds for which the queue is searched for a job whose submit gave no clear answer."""

    @abc.abstractmethod
    def cluster_of(self, job_dir: Path, environ: Mapping[str, str]) -> str:
        """The cluster or server to which a submit with ``environ`` goes; empty where that can't be known.

        Raises:
            SchedulerError: it doesn't answer.
            MissingToolError: it isn't on this machine.
        """

    @abc.abstractmethod
    def run_submit(
        self, job_dir: Path, name: str, environ: Mapping[str, str], after: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """Run the submit command with ``environ``, the whole environment of the front end, less ours for jobs."""

    @abc.abstractmethod
    def query(self, job: Submitted) -> JobState:
        """What the scheduler says of this very job; ``unknown`` where nothing says beyond doubt that it has ended.

        An answer about a job of another user, or from another directory, isn't about this job.

        Raises:
            SchedulerError: it doesn't answer.
            MissingToolError: it isn't on this machine.
        """

    @abc.abstractmethod
    def find(self, job: Submitted) -> Accepted | None:
        """The job of this name, user and directory; None where the scheduler shows none.

        Raises:
            SchedulerError: the scheduler doesn't answer.
        """

    @abc.abstractmethod
    def kill_command(self, job: Submitted) -> list[str]:
        """The command that ends the job."""

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

    def node_kinds(self) -> list[NodeKind]:
        """The kinds of nodes of every queue; none where this scheduler isn't asked for them.

        Raises:
            SchedulerError: it doesn't answer.
            MissingToolError: it isn't on this machine.
        """
        return []

    def dependencies(self, after: Sequence[str]) -> Sequence[str]:
        """The jobs of ``after`` that the submit command can be given; raises SchedulerError, MissingToolError."""
        return after

    def check(self, job_dir: Path) -> None:  # noqa: B027 - most schedulers take any directory
        """Raise UsageError where the scheduler can't run jobs in ``job_dir``."""

    def cancel_timeout(self, job: Submitted, now: JobState) -> SchedulerError:  # noqa: ARG002 - for those who say more
        """The error of a job that hasn't ended CANCEL_S seconds after the kill command."""
        return SchedulerError(
            f"job {job.job_id} still runs {self.CANCEL_S:g} s after {' '.join(self.kill_command(job)[:-1])}",
            then=f"inspect it: {self.look_command(job)}",
        )

    def look_command(self, job: Submitted) -> str:
        return self.LOOK.format(job_id=job.job_id)

    def log(self, job_id: str) -> str:
        """Name of the file in the job's directory for what the script prints."""
        return f"{self.NAME}-{_number(job_id)}.log"

    def exit_code_file(self, job_id: str) -> str:
        """Name of the file in the job's directory into which the script writes its exit code."""
        return f"end-{_number(job_id)}"

    def allocation(
        self, job_id: str, nodes: int, count_variables: tuple[str, ...] = (), cluster: str = ""
    ) -> Allocation:
        """``nodes`` nodes that the job ``job_id`` holds; see ``Allocation``."""
        return Allocation(job_id, nodes, count_variables, self.log(job_id), self.exit_code_file(job_id), cluster)

    def submit(self, job_dir: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:
        self.check(job_dir)
        dependencies = self.dependencies(after)
        name, before, cluster = submitted.job_name(job_dir), submitted.read(job_dir), ""
        unique = f"{name}-{secrets.token_hex(3)}"  # by which the job is found if its submit isn't heard
        with contextlib.suppress(SchedulerError, MissingToolError):  # what stands in the way, the submit will say
            cluster = self.cluster_of(job_dir, environ)
        job = submitted.write(
            job_dir, self.NAME, unique, cluster=cluster, files=sorted(self._numbers_of_files(job_dir))
        )
        try:
            done = self.run_submit(job_dir, unique, environ, dependencies)
            accepted = self._accepted(done)
        except MissingToolError:
            submitted.restore(job_dir, before)
            raise
        except SchedulerError as unheard:
            accepted = self._search(job_dir, job, unheard)
        if accepted is None:
            submitted.restore(job_dir, before)
            raise SchedulerError(
                f"{self.SUBMIT} refuses job {name}: {output_line(done)}", then=f"the script is {job_dir / 'job.sh'}"
            )
        job = dataclasses.replace(job, job_id=accepted.job_id, cluster=accepted.cluster or cluster)
        submitted.keep(job_dir, job)
        return job.job_id

    def _accepted(self, done: subprocess.CompletedProcess[str]) -> Accepted | None:
        """The new job, as the submit command says; None where it was refused.

        Raises:
            SchedulerError: the answer doesn't tell whether it was accepted.
        """
        every = (list(form.finditer(done.stdout)) for form in self.IDS)
        match = next((matches[-1] for matches in every if matches), None)
        if match and not done.returncode:
            return Accepted(match["id"], match.groupdict().get("cluster") or "")
        text = done.stderr + done.stdout
        if done.returncode > 0 and not match and not any(phrase in text for phrase in self.UNCLEAR_ANSWERS):
            return None
        raise SchedulerError(f"{self.SUBMIT} gave no clear answer: {output_line(done)}")

    def _search(self, job_dir: Path, job: Submitted, unheard: SchedulerError) -> Accepted:
        """The job that was accepted although its submit gave no clear answer.

        Raises:
            SchedulerError: ``unheard``, where the queue doesn't show it (yet).
        """
        then = f"gpubench status {job_dir.parents[1]} shows whether {self.TITLE} received the job"
        try:
            accepted = poll_until(
                lambda: self.find(job),
                lambda accepted: accepted is not None,
                interval_s=0.5,
                timeout_s=self.SEARCH_S,
                growth=1.5,
                longest_s=3.0,
            )
        except (SchedulerError, MissingToolError) as error:
            raise SchedulerError(f"{unheard.what}; {error.what}", then=then) from None
        if accepted is None:
            raise SchedulerError(f"{unheard.what}; {self.LIST} shows no job from {job.directory}", then=then)
        return accepted

    def state(self, job_dir: Path) -> JobState:
        job = submitted.read(job_dir)
        if job is None:
            return JobState("unsubmitted")
        state = self._state(job_dir, job)
        return with_log(state, job_dir / self.log(state.job_id))

    def cancel(self, job_dir: Path) -> None:
        """The kill command, then wait for the end; see ``Scheduler.cancel``."""
        now, job = self.state(job_dir), submitted.read(job_dir)
        if now.over or job is None:
            return
        if now.doubt:
            raise SchedulerError(f"job {job_dir.name}: {now.doubt}")
        job = job if job.job_id else self._identified(job_dir, job)
        kill = self.kill_command(job)
        if job.here:
            raise SchedulerError(
                f"job {job_dir.name} runs inside the allocation {now.job_id}, where other work may run too",
                then=f"press Ctrl-C where 'gpubench submit --here' runs, or give up the allocation: {' '.join(kill)}",
            )
        done = self.ask(*kill)
        if done.returncode and not self.state(job_dir).over:
            raise SchedulerError(f"{' '.join(kill)} failed: {output_line(done)}")
        now = poll_until(
            lambda: self.state(job_dir),
            lambda now: now.over,
            interval_s=0.5,
            timeout_s=self.CANCEL_S,
            growth=1.5,  # a busy controller isn't asked twice a second for a minute
            longest_s=3.0,
        )
        if not now.over:
            raise self.cancel_timeout(job, now)

    def declare_ended(self, job_dir: Path) -> None:
        submitted.declare_ended(job_dir)

    def ask(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a client command; no variable of the shell turns it to other clusters or jobs, or changes its answer."""
        return call(command, env=self.environment(os.environ, *self.OF_QUERIES))

    def environment(self, environ: Mapping[str, str], *more: str) -> dict[str, str]:
        """``environ`` less the variables of a job around this shell, and those whose names begin as ``more`` says."""
        left_out = (*self.OF_A_JOB, *more)
        return {key: environ[key] for key in environ if key in self.PASSED_ON or not key.startswith(left_out)}

    def no_answer(self, command: str, done: subprocess.CompletedProcess[str]) -> SchedulerError:
        return SchedulerError(f"{command} failed: {output_line(done)}", then=f"is {self.TITLE} up? try again later")

    def not_ours(self, job: Submitted, user: str, directory: str) -> JobState | None:
        """The state where the scheduler's answer is about a job of another user or directory; None where it is ours.

        ``user`` and ``directory`` are those of the answer, empty where it names none.
        """
        same_user = not job.user or user in ("", job.user, str(job.uid))
        if same_user and (not job.directory or not directory or os.path.realpath(directory) == job.directory):
            return None
        facts = ", ".join(filter(None, (user and f"user {user}", directory and f"directory {directory}")))
        reason = f"{self.TITLE}'s job {job.job_id}{job.place} is another one of that number ({facts})"
        return JobState("unknown", reason=reason, job_id=job.job_id)

    def forgotten(self, job: Submitted) -> JobState:
        """The state of a job that its own cluster doesn't know: it has ended, unless it isn't shown yet."""
        reason = f"{self.TITLE} doesn't know the job, and the job left no exit code"
        if job.cluster and job.age_s > SUBMIT_UNKNOWN_S:
            return JobState("ended", VANISHED, reason, None, job.job_id)
        return JobState("unknown", reason=reason, job_id=job.job_id)

    def _state(self, job_dir: Path, job: Submitted) -> JobState:
        if job.here and (left := self._left(job_dir, job.job_id)):
            return left  # the allocation lives on when the script has ended
        try:
            job = job if job.job_id else self._identified(job_dir, job)
            nothing = f"{self.LIST} shows no job from {job.directory}"
            state = self.query(job) if job.job_id else state_of_unclear_submit(job, nothing)
        except MissingToolError:
            why = f"there is no {self.TITLE} here to ask, and the job left no exit code"
            state = JobState("unknown", reason=why, job_id=job.job_id)
        except SchedulerError as error:
            if job.declared_ended is None:
                raise
            state = JobState("unknown", reason=error.what, job_id=job.job_id)
        if state.phase != "unknown" and state.word != VANISHED:
            return state
        return self._left(job_dir, job.job_id) or declared(job.declared_ended, state)

    def _identified(self, job_dir: Path, job: Submitted) -> Submitted:
        """``job`` with its id, which the front end didn't hear: from the queue, or from the files that the job left."""
        accepted = self.find(job)
        if accepted is None:
            numbers = self._numbers_of_files(job_dir) - set(job.files)
            accepted = self.of_number(max(numbers, key=int), job) if numbers else None
        if accepted is None:
            return job
        return dataclasses.replace(job, job_id=accepted.job_id, cluster=accepted.cluster or job.cluster)

    def _numbers_of_files(self, job_dir: Path) -> set[str]:
        """Numbers of the jobs that have left a log or an exit code here."""
        names = (path.name for name in (self.log("*"), self.exit_code_file("*")) for path in job_dir.glob(name))
        return {match[0] for name in names if (match := re.search(r"\d+", name))}

    def of_number(self, number: str, job: Submitted) -> Accepted | None:  # noqa: ARG002 - most need no more
        """The job of this number on the cluster of ``job``; None where its whole id isn't known."""
        return Accepted(number)

    def _left(self, job_dir: Path, job_id: str) -> JobState | None:
        """How the job ended by the exit code that its script wrote; None where there is none."""
        try:
            code = int((job_dir / self.exit_code_file(job_id)).read_text("ascii"))
        except (OSError, ValueError):
            return None
        return JobState("ended", "COMPLETED" if code == 0 else "FAILED", exit_code=code, job_id=job_id)


def state_of_unclear_submit(job: Submitted, why: str) -> JobState:
    """The state of a job that isn't there, and of whose submit nobody heard: after a while none can come any more."""
    left_s = SUBMIT_UNKNOWN_S - job.age_s
    reason = f"its submit at {job.at} gave no answer, and {why}"
    if not job.cluster:  # maybe another one than that of the submit was asked
        return JobState("unknown", reason=reason)
    if left_s < 0:
        return JobState("ended", "NOT SUBMITTED", reason)
    return JobState("unknown", reason=f"{reason}; ask again in {math.ceil(left_s / 60)} min")


def _number(job_id: str) -> str:
    """Of a job that is named with its server: ``123.server``."""
    return job_id.partition(".")[0]


DEADLINE_S = 30.0
SUBMIT_UNKNOWN_S = 300.0
"""Seconds after which no submit arrives any more, and every job is shown. sbatch, whose front end is dead, tries for
two minutes (MAX_RETRIES in src/sbatch/sbatch.c); LSF shows a new job after MBD_REFRESH_TIME, and a site's cache of
qstat after a minute."""
OURS = "GPUBENCH_"
"""Begins every name by which a script, or what it starts, can be told something else than the plan says."""
BLOCKS = "GPUBENCH_BLOCKS"
BUDGET = "GPUBENCH_BUDGET"


def call(
    command: Sequence[str],
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
            list(command),
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
            f"there is no {command[0]} on this machine", then="run it on a login node of the site"
        ) from None
    except subprocess.TimeoutExpired:
        raise SchedulerError(
            f"{command[0]} didn't answer within {DEADLINE_S:g} s", then="is the controller up? try again later"
        ) from None


def output_line(done: subprocess.CompletedProcess[str]) -> str:
    """What the command said, on one line, each line of it once."""
    lines = dict.fromkeys(" ".join(line.split()) for line in (done.stderr or done.stdout).splitlines())
    return " ".join(filter(None, lines))[:300] or f"exit code {done.returncode}"


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
