"""Run the jobs of a site without a queue, on this machine."""

import os
from collections.abc import Mapping, Sequence

from gpubench.campaign.budget import Budget
from gpubench.campaign.interrupts import LOOK_S, interrupts
from gpubench.campaign.observer import Observe, Observer, unobserved
from gpubench.campaign.preflight import planned_images
from gpubench.errors import InterruptedByUserError
from gpubench.images.obtain import make_ready
from gpubench.model.plan import PlannedJob
from gpubench.polling import poll_until
from gpubench.schedulers import LOCAL
from gpubench.schedulers.batch import STOPPED, inherited
from gpubench.schedulers.local import Job
from gpubench.store.campaign import Campaign


def run_jobs(
    campaign: Campaign,
    blocks: Mapping[str, Sequence[int]],
    *,
    budget: Budget | None = None,
    observe: Observe = unobserved,
) -> None:
    """Run jobs of the campaign on this machine, one after the other, to their end.

    Args:
        blocks: the blocks to run, by job.
        budget: no block is begun that would end beyond it.

    Raises:
        PlanRefusedError: a variant has no image yet.
        SchedulerError: a job was refused.
        InterruptedByUserError: Ctrl-C or a signal, to us or to a job (``gpubench cancel``); the job has ended by then,
            and what was finished is kept.
    """
    for image in planned_images(campaign):
        make_ready(image)
    jobs = [job for job in campaign.jobs if job.job in blocks]
    with interrupts() as interrupted, observe(campaign) as observer:
        for job in jobs:
            _run_job(campaign, job, blocks[job.job], interrupted=interrupted, observer=observer, budget=budget)


def _run_job(
    campaign: Campaign,
    job: PlannedJob,
    blocks: Sequence[int],
    *,
    interrupted: list[str],
    observer: Observer,
    budget: Budget | None,
) -> None:
    scheduler = LOCAL[campaign.plan.site.scheduler]
    directory = campaign.job_dir(job.job)

    def waiting(holder: str) -> None:
        _stop_if(interrupted, None)
        observer.waiting(holder)

    def ended() -> bool:
        _stop_if(interrupted, running)
        observer.look()
        return running.ended()

    with scheduler.acquire_machine(directory, waiting) as lock:
        left = budget.left() if budget else None
        if left is not None:
            observer.limited(left)
        running = scheduler.submit(directory, inherited(os.environ, blocks, left), lock)
        try:
            poll_until(ended, interval_s=LOOK_S)
        finally:
            code = running.close()
        observer.look()
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
