"""Submit jobs one after the other, show what happens, and come back with nothing left behind, also after Ctrl-C."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from gpubench.cli.images.build import make_ready, not_imported
from gpubench.cli.progress import Progress, progress_for
from gpubench.cli.ways import typed
from gpubench.errors import InterruptedByUserError, PlanRefusedError, SchedulerError
from gpubench.model.image import Image
from gpubench.model.plan import PlannedJob
from gpubench.runtimes import RUNTIMES
from gpubench.schedulers import ATTACHED, SCHEDULERS, TENDED, JobState, Running
from gpubench.schedulers.job_environment import inherited
from gpubench.store.accounting import PENDING, Accounting, account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records

LOOK_S = 0.25


@dataclasses.dataclass
class Budget:
    """Seconds in which blocks have to end, from the moment when the first job has the machine."""

    seconds: float
    began: float | None = None

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
        campaign: planned and rendered.
        blocks: the blocks to run, by job; None means all of them.
        budget: no block is begun that would end beyond it.
        quiet: show nothing.

    Raises:
        PlanRefusedError: a variant has no image yet.
        SchedulerError: a job was refused.
        InterruptedByUserError: Ctrl-C or a signal; the job has ended by then, and what was finished is kept.
    """
    for image in planned_images(campaign):
        make_ready(image)
    jobs = [job for job in campaign.jobs if blocks is None or job.job in blocks]
    with interrupts() as interrupted, progress_for(campaign, quiet=quiet) as progress:
        for job in jobs:
            chosen = [block.block for block in job.blocks] if blocks is None else list(blocks[job.job])
            _run_job(campaign, job, chosen, interrupted=interrupted, progress=progress, budget=budget)


def planned_images(campaign: Campaign) -> list[Image]:
    """The image of every variant; raises PlanRefusedError where one isn't built."""
    missing = [variant.label for variant in campaign.plan.variants if variant.image is None]
    if missing:
        raise PlanRefusedError(
            f"no image yet for variant {', '.join(missing)}",
            then=f"make what is missing, and plan anew: {' && '.join(filter(None, unbuilt(campaign)))}",
        )
    return [variant.image for variant in campaign.plan.variants if variant.image]


def unbuilt(campaign: Campaign) -> tuple[str, str]:
    """The commands that build the images which the plan lacks, and that import them; empty where none is needed."""
    specs = dict.fromkeys(variant.ucx for variant in campaign.plan.variants if variant.image is None)
    site = campaign.plan.site
    built = not_imported(site, specs)
    missing = [spec for spec in specs if spec not in built]
    imported = bool(specs) and RUNTIMES[site.runtime].KIND == "squashfs"
    build = typed("images build", site=site.name, ucx=" ".join(missing)) if missing else ""
    return build, typed("images import", site=site.name, ucx=" ".join(specs)) if imported else ""


def _run_job(
    campaign: Campaign,
    job: PlannedJob,
    blocks: Sequence[int],
    *,
    interrupted: list[str],
    progress: Progress,
    budget: Budget | None,
) -> None:
    scheduler = ATTACHED[campaign.plan.site.scheduler]
    directory = campaign.job_dir(job.job)

    def waiting(holder: str) -> None:
        _stop_if(interrupted, None)
        progress.waiting(holder)

    with scheduler.turn(directory, waiting) as hold:
        left = budget.left() if budget else None
        running = scheduler.submit(directory, inherited(os.environ, blocks, left), hold)
        try:
            while not running.ended():
                _stop_if(interrupted, running)
                progress.look()
                time.sleep(LOOK_S)
        finally:
            running.close()
        progress.look()
        _stop_if(interrupted, None)


def _stop_if(interrupted: list[str], running: Running | None) -> None:
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
    """How every job stands (stood, in a pack); raises SchedulerError and MissingToolError where nobody can say."""
    if campaign.pack is not None:
        index = campaign.pack.index
        return {
            job.job: JobState("unknown" if job.job in index.open_jobs else "ended", index.ends.get(job.job, ""))
            for job in campaign.jobs
        }
    scheduler = SCHEDULERS[campaign.plan.site.scheduler]
    return {job.job: scheduler.state(campaign.job_dir(job.job)) for job in campaign.jobs}


def tend(campaign: Campaign, *, hand_over: bool = True) -> None:
    """Do what the campaign's scheduler leaves to the front end; see ``Tended``."""
    keeper = TENDED.get(campaign.plan.site.scheduler) if campaign.pack is None else None
    if keeper is not None:
        keeper.tend([campaign.job_dir(job.job) for job in campaign.jobs], hand_over=hand_over)


def account_now(campaign: Campaign, records: Records | None = None) -> Accounting:
    """What became of every planned run; what may still come is pending, and a lost run says how its job ended.

    Of a job that nobody knows (on a copy at home, say) nothing is said to be lost. ``records`` as for ``account``.
    """
    records = records or Records()
    if campaign.pack is not None:
        index = campaign.pack.index
        return account(campaign, alive=index.open_jobs, ends=index.ends, records=records)
    with contextlib.suppress(SchedulerError):  # as below
        tend(campaign, hand_over=False)
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
    """How those jobs stand that have runs without an end; ``unknown`` where their scheduler doesn't answer."""
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
