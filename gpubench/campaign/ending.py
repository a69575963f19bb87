"""End jobs, or keep a user's word that they have ended."""

import logging
from collections.abc import Mapping
from pathlib import Path

from gpubench.campaign.lock import campaign_lock
from gpubench.errors import GpubenchError, SchedulerError, UsageError
from gpubench.schedulers import SCHEDULERS, JobState, Scheduler
from gpubench.schedulers import submitted as jobs_known
from gpubench.store.campaign import Campaign
from gpubench.store.states import doubts, job_states

_log = logging.getLogger(__name__)


def cancel_jobs(campaign: Campaign) -> None:
    """End every job that waits or runs; all are tried, the first that couldn't be ended is raised."""
    scheduler = SCHEDULERS[campaign.plan.site.scheduler]
    failed: list[GpubenchError] = []
    states = job_states(campaign)
    for job in [job for job, state in states.items() if state.alive]:
        try:
            scheduler.cancel(campaign.job_dir(job))
            _log.info(f"job {job}: cancelled")
        except GpubenchError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    for what, then in doubts(campaign, states):
        raise SchedulerError(what, then=then)
    if not any(state.alive for state in states.values()):
        _log.info("no job waits or runs")


def declare_job_ended(campaign: Campaign, job_id: str) -> None:
    """Write into the campaign that this user says that one of its jobs has ended; see ``declare_ended``."""
    with campaign_lock(campaign.directory):
        directories = {job.job: campaign.job_dir(job.job) for job in campaign.jobs}
        declare_ended(SCHEDULERS[campaign.plan.site.scheduler], directories, job_id)


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
            raise UsageError(f"job {name} ({job_id}) has not ended: {state.text}", then="leave --ended out to end it")
        if state.over:
            raise UsageError(f"job {name} ({job_id}) has ended already: {state.end or state.word}")
        scheduler.declare_ended(directory)
        _log.info(f"job {name}: {scheduler.state(directory).end}")
        return
    raise UsageError(f"--ended {job_id}: no such job was submitted", then="gpubench status lists the jobs")
