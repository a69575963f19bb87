"""Run jobs on this machine, in the queue of the site, or on nodes that this shell holds; and ask for their state."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from gpubench.cli.say import say, warn
from gpubench.errors import (
    GpubenchError,
    InterruptedByUserError,
    MissingToolError,
    SchedulerError,
    UsageError,
)
from gpubench.model.plan import Plan, PlannedJob
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.polling import poll_until
from gpubench.render.environment import words
from gpubench.schedulers import BATCH, LOCAL, POLLED, SCHEDULERS, Allocation, JobState, QueuedScheduler, Scheduler
from gpubench.schedulers import submitted as jobs_known
from gpubench.schedulers.batch import STOPPED, inherited
from gpubench.schedulers.local import Job
from gpubench.store.accounting import PENDING, Accounting, account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records

if TYPE_CHECKING:
    from gpubench.cli.progress import Progress

LOOK_S = 0.25


def continue_command(campaign: Campaign) -> str:
    """What to type to run what is missing of a campaign."""
    return words(["gpubench", "bench", "--campaign", str(campaign.directory)])


@dataclasses.dataclass
class Budget:
    """Seconds in which blocks have to end, from the moment when the first job has the machine.

    A queue decides when a job starts, so each job has a part of the budget, counted from its own start.
    """

    seconds: float
    began: float | None = None

    def part(self, plan: Plan, blocks: int) -> float:
        """Seconds of a job of so many blocks, of all that ``plan`` has."""
        return self.seconds * blocks / sum(len(job.blocks) for job in plan.jobs)

    def left(self) -> float:
        """Seconds from now on."""
        self.began = time.monotonic() if self.began is None else self.began
        return self.seconds - (time.monotonic() - self.began)


def run_jobs(
    campaign: Campaign,
    blocks: Mapping[str, Sequence[int]] | None = None,
    *,
    budget: Budget | None = None,
    quiet: bool = False,
) -> None:
    """Run jobs of the campaign on this machine, one after the other, to their end.

    Args:
        blocks: the blocks to run, by job; None means all of them.
        budget: no block is begun that would end beyond it.

    Raises:
        PlanRefusedError: a variant has no image yet.
        SchedulerError: a job was refused.
        InterruptedByUserError: Ctrl-C or a signal, to us or to a job (``gpubench cancel``); the job has ended by then,
            and what was finished is kept.
    """
    from gpubench.cli.campaign.preflight import planned_images
    from gpubench.cli.images.obtain import make_ready
    from gpubench.cli.progress import progress_for

    for image in planned_images(campaign):
        make_ready(image)
    jobs = [job for job in campaign.jobs if blocks is None or job.job in blocks]
    with interrupts() as interrupted, progress_for(campaign, quiet=quiet) as progress:
        for job in jobs:
            chosen = [block.block for block in job.blocks] if blocks is None else list(blocks[job.job])
            _run_job(campaign, job, chosen, interrupted=interrupted, progress=progress, budget=budget)


def _run_job(
    campaign: Campaign,
    job: PlannedJob,
    blocks: Sequence[int],
    *,
    interrupted: list[str],
    progress: Progress,
    budget: Budget | None,
) -> None:
    scheduler = LOCAL[campaign.plan.site.scheduler]
    directory = campaign.job_dir(job.job)

    def waiting(holder: str) -> None:
        _stop_if(interrupted, None)
        progress.waiting(holder)

    def ended() -> bool:
        _stop_if(interrupted, running)
        progress.look()
        return running.ended()

    with scheduler.acquire_machine(directory, waiting) as lock:
        left = budget.left() if budget else None
        running = scheduler.submit(directory, inherited(os.environ, blocks, left), lock)
        try:
            poll_until(ended, interval_s=LOOK_S)
        finally:
            code = running.close()
        progress.look()
        _stop_if(interrupted, None)
        if code == STOPPED:  # by gpubench cancel or by hand: the jobs behind it aren't wanted either
            raise InterruptedByUserError(f"job {job.job} was ended by a signal")


def _stop_if(interrupted: list[str], running: Job | None) -> None:
    if not interrupted:
        return
    if running is not None:
        running.cancel()
        running.close()
    raise InterruptedByUserError(f"interrupted by {interrupted[0]}")


@contextlib.contextmanager
def interrupts() -> Iterator[list[str]]:
    """Names of the signals that arrived, for the loop to act on: the job has to be ended before we are."""
    seen: list[str] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        seen.append(signal.Signals(number).name)

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def job_states(campaign: Campaign) -> dict[str, JobState]:
    """The state of every job (in a pack, the last one); raises SchedulerError and MissingToolError if it is unknown."""
    if campaign.pack is not None:
        index = campaign.pack.index
        return {
            job.job: JobState("unknown" if job.job in index.open_jobs else "ended", index.ends.get(job.job, ""))
            for job in campaign.jobs
        }
    scheduler = SCHEDULERS[campaign.plan.site.scheduler]
    states: dict[str, JobState] = {}
    for job in campaign.jobs:
        directory = campaign.job_dir(job.job)
        try:
            states[job.job] = scheduler.state(directory)
        except SchedulerError as error:
            entry = jobs_known.read(directory)
            way = _insist(campaign, job.job, entry.job_id if entry else "")
            raise SchedulerError(error.what, then="; ".join(filter(None, (error.then, way)))) from None
    return states


def poll(campaign: Campaign, *, submit_next: bool = True) -> None:
    """Make the periodic call that the campaign's scheduler needs, if any; see ``Polled``."""
    scheduler = POLLED.get(campaign.plan.site.scheduler) if campaign.pack is None else None
    if scheduler is not None:
        scheduler.poll([campaign.job_dir(job.job) for job in campaign.jobs], submit_next=submit_next)


def account_now(campaign: Campaign, records: Records | None = None) -> Accounting:
    """The outcome of every planned run; a run that may still come is pending, and a lost run says how its job ended.

    No run of an unknown job (for example in a copy on another machine) is called lost. ``records`` as for ``account``.
    """
    records = records or Records()
    if campaign.pack is not None:
        index = campaign.pack.index
        return account(campaign, alive=index.open_jobs, ends=index.ends, records=records)
    with contextlib.suppress(SchedulerError):  # as below
        poll(campaign, submit_next=False)
    accounting = _with_all_alive(campaign, records)
    states = _states(campaign, accounting)
    if not states:
        return accounting  # every run has ended, so that nothing is left to be asked
    return account(
        campaign,
        alive={job for job, state in states.items() if state.phase != "ended"},
        ends={job: state.end or state.reason for job, state in states.items()},
        records=records,
    )


def open_states(campaign: Campaign, records: Records) -> dict[str, JobState]:
    """The state of jobs that have unfinished runs; ``unknown`` if their scheduler doesn't answer."""
    return _states(campaign, _with_all_alive(campaign, records))


def _with_all_alive(campaign: Campaign, records: Records) -> Accounting:
    return account(campaign, alive={job.job for job in campaign.jobs}, records=records)


def _states(campaign: Campaign, accounting: Accounting) -> dict[str, JobState]:
    scheduler = SCHEDULERS[campaign.plan.site.scheduler]
    open_jobs = {one.job.job for one in accounting.outcomes if one.status == PENDING}
    states: dict[str, JobState] = {}
    for job in sorted(open_jobs):
        try:
            states[job] = scheduler.state(campaign.job_dir(job))
        except SchedulerError as error:  # results that are there can be judged while a controller is down
            states |= {other: JobState("unknown", reason=str(error)) for other in open_jobs - states.keys()}
            break
    return states


def missing_words(campaign: Campaign) -> str:
    """How much has been finished, in one phrase."""
    counts = account(campaign).counts()
    total = sum(counts.values())
    return f"{counts.get('ok', 0) + counts.get('failed', 0)} of {total} runs finished"


ASK_S = 5.0
"""Seconds between two queries of a scheduler that others use, too."""


def submit_jobs(
    campaign: Campaign, blocks: Mapping[str, Sequence[int]] | None, budget: Budget | None = None
) -> list[str] | None:
    """Submit jobs of the campaign if its scheduler has a queue; None if it has none, so that the caller must run them.

    Args:
        blocks: the blocks to run, by job; None means all of them.
        budget: no job begins a block that would end beyond its part.

    Returns:
        Names of the jobs that the queue takes only when those before them have ended.

    Raises:
        PlanRefusedError: a variant has no image yet.
        DataError: an image was changed since it was built or imported.
        MissingToolError: the scheduler isn't here; the scripts are.
        SchedulerError: a job was refused; those before it are submitted.
    """
    from gpubench.cli.campaign.preflight import require_sound_images

    site = campaign.plan.site
    scheduler = BATCH.get(site.scheduler)
    if scheduler is None:
        return None
    require_sound_images(campaign)
    jobs = [job for job in campaign.jobs if blocks is None or job.job in blocks]
    at_once = jobs[: site.batch.jobs_per_user or len(jobs)]
    before: list[str] = []
    for job in at_once:
        chosen = [block.block for block in job.blocks] if blocks is None else blocks[job.job]
        directory = campaign.job_dir(job.job)
        part_s = budget.part(campaign.plan, len(chosen)) if budget else None
        try:
            job_id = scheduler.submit(directory, inherited(os.environ, chosen, part_s), before)
        except MissingToolError as error:
            raise MissingToolError(
                f"{error.what}; the scripts are in {campaign.directory / 'jobs'}",
                then=f"on a login node of the site: gpubench submit {campaign.directory}",
            ) from None
        except SchedulerError as error:
            later = _later(campaign) if before or job is not at_once[0] else ""
            raise SchedulerError(error.what, then="; ".join(filter(None, (error.then, later)))) from None
        entry = jobs_known.read(directory)
        say(f"job {job.job}: {job_id}{entry.place if entry else ''}")
        if entry and entry.warning:
            warn(f"job {job.job}: {entry.warning}")
        if scheduler.ONE_AT_A_TIME or site.layout.one_machine:  # two at once would measure each other
            before = [job_id]
    waits = ", which submits the jobs that wait, and fetches results" if scheduler.ONE_AT_A_TIME else ""
    say(f"to see the progress: gpubench status --watch {campaign.directory}{waits}")
    left = [job.job for job in jobs[len(at_once) :]]
    if left:
        say(f"{counted(len(left), 'job')} not submitted: {queue_limit(site)}; {_later(campaign)}")
    return left


def queue_limit(site: Site) -> str:
    """What the queue allows a user, in words."""
    return f"queue {site.batch.queue} takes {counted(site.batch.jobs_per_user, 'job')} of a user at a time"


def _later(campaign: Campaign) -> str:
    command = words(["gpubench", "submit", "--campaign", str(campaign.directory)])
    return f"to submit what is missing, when the submitted jobs have ended: {command}"


MOST_FAILURES = 12
"""So many consecutive queries may fail (one minute): a controller may be restarted in this time."""


def watch_jobs(campaign: Campaign) -> dict[str, JobState]:
    """The state of every job, after waiting until none of the campaign waits or runs.

    Ctrl-C ends the watching, not the jobs. A scheduler that fails to answer is asked again.

    Raises:
        InterruptedByUserError: Ctrl-C or a signal.
        MissingToolError: the scheduler isn't on this machine.
        SchedulerError: it failed to answer ``MOST_FAILURES`` times in a row.
    """
    from gpubench.cli.progress import progress_for

    with interrupts() as interrupted, progress_for(campaign, joining=True) as progress:
        told: dict[str, str] = {}
        asked, failures = 0.0, 0
        while True:
            progress.look()
            if interrupted:
                raise InterruptedByUserError(
                    f"stopped watching by {interrupted[0]}; the jobs continue",
                    then=f"gpubench status {campaign.directory}",
                )
            if time.monotonic() - asked > ASK_S:
                try:
                    poll(campaign)
                    states = job_states(campaign)
                    doubts = [f"job {job}: {state.doubt}" for job, state in states.items() if state.doubt]
                    ended = not any(state.alive for state in states.values())
                    if ended and doubts and failures + 1 < MOST_FAILURES:
                        raise SchedulerError(doubts[0])
                    if ended:
                        poll(campaign)
                except SchedulerError as error:
                    failures += 1
                    if failures == MOST_FAILURES:
                        raise
                    if failures == 1:
                        progress.log(f"{error.what}; trying again every {ASK_S:g} s")
                else:
                    failures = 0
                    for job, state in states.items():
                        if told.get(job) != state.standing:
                            told[job] = state.standing
                            progress.log(f"job {job} ({state.job_id}): {state.standing}")
                    if ended:
                        progress.look()
                        return states
                asked = time.monotonic()
            time.sleep(0.5)


def cancel_jobs(campaign: Campaign) -> None:
    """End every job that waits or runs; all are tried, the first that couldn't be ended is raised."""
    scheduler = SCHEDULERS[campaign.plan.site.scheduler]
    failed: list[GpubenchError] = []
    states = job_states(campaign)
    for job in [job for job, state in states.items() if state.alive]:
        try:
            scheduler.cancel(campaign.job_dir(job))
            say(f"job {job}: cancelled")
        except GpubenchError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    for what, then in doubts(campaign, states):
        raise SchedulerError(what, then=then)
    if not any(state.alive for state in states.values()):
        say("no job waits or runs")


def require_no_doubt(campaign: Campaign, states: Mapping[str, JobState]) -> None:
    """Raise UsageError if it is unknown whether a job has ended: what it may still run must not be run beside it."""
    for what, then in doubts(campaign, states):
        raise UsageError(what, then=then)


def doubts(campaign: Campaign, states: Mapping[str, JobState]) -> Iterator[tuple[str, str]]:
    """What is unknown of each job, and what to do about it."""
    for job, state in sorted(states.items()):
        if state.doubt:
            yield f"{campaign.directory}, job {job}: {state.doubt}", _insist(campaign, job, state.job_id)


def _insist(campaign: Campaign, job: str, job_id: str) -> str:
    """What a user can do who knows more of a job than its scheduler says."""
    way = words(["gpubench", "cancel", str(campaign.directory), "--ended", job_id or job])
    return f"if you know that job {job_id or job} has ended: {way}"


def declare_ended(scheduler: Scheduler, directories: Mapping[str, Path], job_id: str) -> None:
    """Write beside a job that this user says that it has ended, where its scheduler can't tell.

    Args:
        directories: of the campaign's or cluster's jobs, by name.
        job_id: the scheduler's; of a job whose id nobody heard, its name.

    Raises:
        UsageError: there is no such job, or its scheduler knows how it stands.
    """
    for name, directory in directories.items():
        try:
            state = scheduler.state(directory)
        except SchedulerError as error:  # one that doesn't answer any more must not block the campaign for ever
            entry = jobs_known.read(directory)
            state = JobState("unknown", reason=error.what, job_id=entry.job_id if entry else "")
        if state.phase == "unsubmitted" or job_id != (state.job_id or name):
            continue
        if state.alive:
            raise UsageError(f"job {name} ({job_id}) has not ended: {state.words}", then="leave --ended out to end it")
        if state.over:
            raise UsageError(f"job {name} ({job_id}) has ended already: {state.end or state.word}")
        scheduler.declare_ended(directory)
        say(f"job {name}: {scheduler.state(directory).end}")
        return
    raise UsageError(f"--ended {job_id}: no such job was submitted", then="gpubench status lists the jobs")


STOP_S = 120.0
"""Seconds from the signal to the end of a script: supervisors first end their processes and write a record."""


def run_here(campaign: Campaign) -> None:
    """Run the jobs of the campaign that fit into this allocation, one after the other, to their end.

    Raises:
        UsageError: the site has no allocations, this shell is in none, or it is too small for every job.
        PlanRefusedError: a variant has no image yet.
        InterruptedByUserError: Ctrl-C or a signal; the job has ended by then, and what was finished is kept.
    """
    from gpubench.cli.campaign.preflight import require_sound_images

    scheduler, held = _allocation(campaign)
    require_sound_images(campaign)
    for job in campaign.jobs:
        if job.nodes > held.nodes:
            say(
                f"job {job.job}: not run here, it needs {job.nodes} nodes and allocation {held.job_id} has {held.nodes}"
            )
    fitting = [job for job in campaign.jobs if job.nodes <= held.nodes]
    if not fitting:
        raise UsageError(
            f"every job of {campaign.directory} needs more nodes than allocation {held.job_id} has ({held.nodes})",
            then=f"get more: {_allocate(campaign, scheduler)}",
        )
    from gpubench.cli.progress import progress_for

    with interrupts() as interrupted, progress_for(campaign) as progress:
        for job in fitting:
            _run_script(campaign, job, held, interrupted, progress)


def _allocation(campaign: Campaign) -> tuple[QueuedScheduler, Allocation]:
    site = campaign.plan.site
    scheduler = BATCH.get(site.scheduler)
    if scheduler is None:
        raise UsageError(
            f"site {site.name} runs its jobs on this machine, without an allocation", then="leave --here out"
        )
    held = scheduler.current_allocation(os.environ)
    if held is None:
        raise UsageError(
            "--here runs inside an allocation, and this shell is in none",
            then=f"get an allocation, and run the command in it: {_allocate(campaign, scheduler)}",
        )
    return scheduler, held


def _allocate(campaign: Campaign, scheduler: QueuedScheduler) -> str:
    nodes = min(job.nodes for job in campaign.jobs)
    return f"{scheduler.ALLOCATE.format(nodes=nodes)} gpubench submit --here {campaign.directory}"


def _run_script(
    campaign: Campaign, job: PlannedJob, held: Allocation, interrupted: list[str], progress: Progress
) -> None:
    directory = campaign.job_dir(job.job)
    progress.log(f"job {job.job}: on {job.nodes} nodes of allocation {held.job_id}")
    (directory / held.exit_code_file).unlink(missing_ok=True)
    scheduler = campaign.plan.site.scheduler
    jobs_known.write(directory, scheduler, job.job, held.job_id, cluster=held.cluster, here=True)
    environ = {
        **inherited(os.environ, [block.block for block in job.blocks]),
        **dict.fromkeys(held.count_variables, str(job.nodes)),
    }
    try:
        with (directory / held.log).open("ab") as log:
            process = subprocess.Popen(
                ["bash", "job.sh"],
                cwd=directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: the script is told in a way that lets it write its records
            )
    except OSError as error:
        raise MissingToolError(f"can't start {directory / 'job.sh'}: {error.strerror}") from None

    def ended() -> bool:
        progress.look()
        return process.poll() is not None or bool(interrupted)

    try:
        poll_until(ended, interval_s=LOOK_S)
    finally:
        end_process(process, STOP_S)
    progress.look()
    if interrupted:
        raise InterruptedByUserError(
            f"interrupted by {interrupted[0]}; {missing_words(campaign)}",
            then=f"to run what is missing: {continue_command(campaign)}",
        )


def end_process(process: subprocess.Popen[bytes], stop_s: float) -> None:
    """End the job, whatever the reason for stopping; it gets ``stop_s`` seconds after the signal."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(stop_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
