"""``gpubench submit --here``: job scripts on nodes that this shell holds already."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

from gpubench.cli.campaign.running import LOOK_S, interrupts, missing_words
from gpubench.cli.campaign.shared_paths import require_sound_images
from gpubench.cli.progress import Progress, progress_for
from gpubench.cli.say import say
from gpubench.cli.ways import typed
from gpubench.errors import InterruptedByUserError, MissingToolError, UsageError
from gpubench.model.plan import PlannedJob
from gpubench.schedulers import DETACHED, Allocation, Detached
from gpubench.schedulers import submitted as jobs_known
from gpubench.schedulers.job_environment import inherited
from gpubench.store.campaign import Campaign

STOP_S = 120.0
"""From the signal to the end of a script: supervisors end their processes and write a record first."""


def run_here(campaign: Campaign) -> None:
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
            say(
                f"job {job.job}: not run here, it needs {job.nodes} nodes and allocation {held.job_id} has {held.nodes}"
            )
    fitting = [job for job in campaign.jobs if job.nodes <= held.nodes]
    if not fitting:
        raise UsageError(
            f"every job of {campaign.directory} needs more than the {held.nodes} nodes of allocation {held.job_id}",
            then=f"get more: {_words(campaign, scheduler)}",
        )
    with interrupts() as interrupted, progress_for(campaign) as progress:
        for job in fitting:
            _run_job(campaign, job, held, interrupted, progress)


def _allocation(campaign: Campaign) -> tuple[Detached, Allocation]:
    site = campaign.plan.site
    scheduler = DETACHED.get(site.scheduler)
    if scheduler is None:
        raise UsageError(f"site {site.name} runs its jobs on this machine, in no allocation", then="leave --here out")
    held = scheduler.held(os.environ)
    if held is None:
        raise UsageError(
            "--here runs on nodes that are held already, and this shell is in no allocation",
            then=f"get one, and run it there: {_words(campaign, scheduler)}",
        )
    return scheduler, held


def _words(campaign: Campaign, scheduler: Detached) -> str:
    nodes = min(job.nodes for job in campaign.jobs)
    return f"{scheduler.ALLOCATE.format(nodes=nodes)} gpubench submit --here {campaign.directory}"


def _run_job(campaign: Campaign, job: PlannedJob, held: Allocation, interrupted: list[str], progress: Progress) -> None:
    directory = campaign.job_dir(job.job)
    progress.tell(f"job {job.job}: on {job.nodes} nodes of allocation {held.job_id}")
    (directory / held.last_word).unlink(missing_ok=True)
    jobs_known.write(directory, campaign.plan.site.scheduler, job.job, held.job_id, here=True)
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
    try:
        while process.poll() is None and not interrupted:
            progress.look()
            time.sleep(LOOK_S)
    finally:
        _end(process)
    progress.look()
    if interrupted:
        raise InterruptedByUserError(
            f"interrupted by {interrupted[0]}; {missing_words(campaign)}",
            then=f"to run what is missing: {typed('bench', campaign=campaign.directory)}",
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have it ended, whatever made us stop waiting for it."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
