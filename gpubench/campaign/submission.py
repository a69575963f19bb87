"""Hand the jobs of a campaign to the queue of its site."""

import logging
import os
from collections.abc import Mapping, Sequence

from gpubench.campaign.budget import Budget
from gpubench.campaign.completeness import watch_command
from gpubench.campaign.plan_lines import queue_limit
from gpubench.campaign.preflight import require_sound_images
from gpubench.errors import MissingToolError, SchedulerError
from gpubench.model.text import counted
from gpubench.render.shell import command_line
from gpubench.schedulers import BATCH
from gpubench.schedulers import submitted as jobs_known
from gpubench.schedulers.batch import inherited
from gpubench.store.campaign import Campaign

_log = logging.getLogger(__name__)


def submit_jobs(
    campaign: Campaign, blocks: Mapping[str, Sequence[int]], budget: Budget | None = None
) -> list[str] | None:
    """Submit jobs of the campaign if its scheduler has a queue; None if it has none, so that the caller must run them.

    Args:
        blocks: the blocks to run, by job.
        budget: no job begins a block that would end beyond its part.

    Returns:
        Names of the jobs that the queue takes only when those before them have ended.

    Raises:
        PlanRefusedError: a variant has no image yet.
        DataError: an image was changed since it was built or imported.
        MissingToolError: the scheduler isn't here; the scripts are.
        SchedulerError: a job was refused; those before it are submitted.
    """
    site = campaign.plan.site
    scheduler = BATCH.get(site.scheduler)
    if scheduler is None:
        return None
    require_sound_images(campaign)
    jobs = [job for job in campaign.jobs if job.job in blocks]
    at_once = jobs[: site.batch.jobs_per_user or len(jobs)]
    before: list[str] = []
    for job in at_once:
        chosen, directory = blocks[job.job], campaign.job_dir(job.job)
        part_s = budget.part(campaign.plan, len(chosen)) if budget else None
        try:
            job_id = scheduler.submit(directory, inherited(os.environ, chosen, part_s), before)
        except MissingToolError as error:
            raise MissingToolError(
                f"{error.what}; the scripts are in {campaign.directory / 'jobs'}",
                then=f"on a login node of the site: {command_line(['gpubench', 'submit', str(campaign.directory)])}",
            ) from None
        except SchedulerError as error:
            later = _later(campaign) if before or job is not at_once[0] else ""
            raise SchedulerError(error.what, then="; ".join(filter(None, (error.then, later)))) from None
        entry = jobs_known.read(directory)
        _log.info(f"job {job.job}: {job_id}{entry.place if entry else ''}")
        if entry and entry.warning:
            _log.warning(f"job {job.job}: {entry.warning}")
        if scheduler.ONE_AT_A_TIME or site.layout.one_machine:  # two at once would measure each other
            before = [job_id]
    waits = ", which submits the jobs that wait, and fetches results" if scheduler.ONE_AT_A_TIME else ""
    _log.info(f"to see the progress: {watch_command(campaign)}{waits}")
    left = [job.job for job in jobs[len(at_once) :]]
    if left:
        _log.info(f"{counted(len(left), 'job')} not submitted: {queue_limit(site)}; {_later(campaign)}")
    return left


def _later(campaign: Campaign) -> str:
    command = command_line(["gpubench", "submit", "--campaign", str(campaign.directory)])
    return f"to submit what is missing, when the submitted jobs have ended: {command}"
