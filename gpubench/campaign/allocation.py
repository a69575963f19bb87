"""Run the jobs of a campaign on the nodes that this shell holds."""

import logging
import os
import subprocess

from gpubench.campaign.completeness import continue_command, missing_text
from gpubench.campaign.interrupts import LOOK_S, end_process, interrupts
from gpubench.campaign.observer import Observe, Observer, unobserved
from gpubench.campaign.preflight import require_sound_images
from gpubench.errors import InterruptedByUserError, MissingToolError, UsageError
from gpubench.model.plan import PlannedJob
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.polling import poll_until
from gpubench.render.shell import command_line
from gpubench.schedulers import BATCH, Allocation, QueuedScheduler
from gpubench.schedulers import submitted as jobs_known
from gpubench.schedulers.batch import inherited
from gpubench.store.campaign import Campaign

_log = logging.getLogger(__name__)

STOP_S = 120.0
"""Seconds from the signal to the end of a script: supervisors first end their processes and write a record."""


def run_here(campaign: Campaign, observe: Observe = unobserved) -> None:
    """Run the jobs of the campaign that fit into this allocation, one after the other, to their end.

    Raises:
        UsageError: the site has no allocations, this shell is in none, or it is too small for every job.
        PlanRefusedError: a variant has no image yet.
        InterruptedByUserError: Ctrl-C or a signal; the job has ended by then, and what was finished is kept.
    """
    scheduler, held = _allocation(campaign)
    require_sound_images(campaign)
    for job in campaign.jobs:
        if job.nodes > held.nodes:
            _log.info(
                f"job {job.job}: not run here, it needs {job.nodes} nodes and allocation {held.job_id} has {held.nodes}"
            )
    fitting = [job for job in campaign.jobs if job.nodes <= held.nodes]
    if not fitting:
        raise UsageError(
            f"every job of {campaign.directory} needs more nodes than allocation {held.job_id} has ({held.nodes})",
            then=f"get more: {_allocate(campaign, scheduler)}",
        )
    with interrupts() as interrupted, observe(campaign) as observer:
        for job in fitting:
            _run_script(campaign, job, held, interrupted, observer)


def queue_of(site: Site) -> QueuedScheduler:
    """The scheduler whose allocations a shell can hold; raises UsageError where jobs of a site need none."""
    scheduler = BATCH.get(site.scheduler)
    if scheduler is None:
        raise UsageError(
            f"site {site.name} runs its jobs on this machine, without an allocation", then="leave --here out"
        )
    return scheduler


def _allocation(campaign: Campaign) -> tuple[QueuedScheduler, Allocation]:
    scheduler = queue_of(campaign.plan.site)
    held = scheduler.current_allocation(os.environ)
    if held is None:
        raise UsageError(
            "--here runs inside an allocation, and this shell is in none",
            then=f"get an allocation, and run the command in it: {_allocate(campaign, scheduler)}",
        )
    return scheduler, held


def _allocate(campaign: Campaign, scheduler: QueuedScheduler) -> str:
    nodes = min(job.nodes for job in campaign.jobs)
    command = command_line(["gpubench", "submit", "--here", str(campaign.directory)])
    return f"{scheduler.ALLOCATE.format(nodes=nodes)} {command}"


def _run_script(
    campaign: Campaign, job: PlannedJob, held: Allocation, interrupted: list[str], observer: Observer
) -> None:
    directory = campaign.job_dir(job.job)
    observer.log(f"job {job.job}: on {counted(job.nodes, 'node')} of allocation {held.job_id}")
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
        observer.look()
        return process.poll() is not None or bool(interrupted)

    try:
        poll_until(ended, interval_s=LOOK_S)
    finally:
        end_process(process, STOP_S)
    observer.look()
    if interrupted:
        raise InterruptedByUserError(
            f"interrupted by {interrupted[0]}; {missing_text(campaign)}",
            then=f"to run what is missing: {continue_command(campaign)}",
        )
