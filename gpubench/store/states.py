"""How the jobs and runs of a campaign stand: by their scheduler, and by the files that runs have left."""

import contextlib
from collections.abc import Iterator, Mapping

from gpubench.errors import SchedulerError, UsageError
from gpubench.render.shell import command_line
from gpubench.schedulers import POLLED, SCHEDULERS, JobState
from gpubench.schedulers import submitted as jobs_known
from gpubench.store.accounting import PENDING, Accounting, account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records


def job_states(campaign: Campaign) -> dict[str, JobState]:
    """The state of every job; raises SchedulerError and MissingToolError if it is unknown."""
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
    scheduler = POLLED.get(campaign.plan.site.scheduler)
    if scheduler is not None:
        scheduler.poll([campaign.job_dir(job.job) for job in campaign.jobs], submit_next=submit_next)


def polled_states(campaign: Campaign) -> dict[str, JobState]:
    poll(campaign)
    return job_states(campaign)


def account_now(campaign: Campaign) -> Accounting:
    """The outcome of every planned run; a run that may still come is pending, and a lost run says how its job ended.

    No run of an unknown job (for example in a copy on another machine) is called lost.
    """
    records = Records()
    with contextlib.suppress(SchedulerError):  # as below
        poll(campaign, submit_next=False)
    accounting = account(campaign, alive={job.job for job in campaign.jobs}, records=records)
    states = _states(campaign, accounting)
    if not states:
        return accounting  # every run has ended, so that nothing is left to be asked
    return account(
        campaign,
        alive={job for job, state in states.items() if state.phase != "ended"},
        ends={job: state.end or state.reason for job, state in states.items()},
        records=records,
    )


def _states(campaign: Campaign, accounting: Accounting) -> dict[str, JobState]:
    scheduler = SCHEDULERS[campaign.plan.site.scheduler]
    open_jobs = {result.job.job for result in accounting.outcomes if result.status == PENDING}
    states: dict[str, JobState] = {}
    for job in sorted(open_jobs):
        try:
            states[job] = scheduler.state(campaign.job_dir(job))
        except SchedulerError as error:  # results that are there can be judged while a controller is down
            states |= {other: JobState("unknown", reason=str(error)) for other in open_jobs - states.keys()}
            break
    return states


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
    way = command_line(["gpubench", "cancel", str(campaign.directory), "--ended", job_id or job])
    return f"if you know that job {job_id or job} has ended: {way}"
