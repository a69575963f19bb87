"""Jobs that wait in a queue: submit them, watch them, end them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from gpubench.cli.campaign.running import interrupts, job_states, poll
from gpubench.cli.campaign.shared_paths import require_sound_images
from gpubench.cli.progress import progress_for
from gpubench.cli.say import say
from gpubench.errors import GpubenchError, InterruptedByUserError, MissingToolError
from gpubench.schedulers import BATCH, SCHEDULERS
from gpubench.schedulers.client import inherited
from gpubench.store.campaign import Campaign

LOOK_S = 5.0
"""Between two questions to a scheduler that others use too."""


def submit_jobs(campaign: Campaign, blocks: Mapping[str, Sequence[int]] | None) -> bool:
    """Submit jobs of the campaign where its scheduler has a queue; False where it has none and somebody must run them.

    Args:
        campaign: planned and rendered.
        blocks: the blocks to run, by job; None means all of them.

    Raises:
        PlanRefusedError: a variant has no image yet.
        DataError: an image was changed since it was built or imported.
        MissingToolError: the scheduler isn't here; the scripts are.
        SchedulerError: a job was refused; those before it are submitted.
    """
    scheduler = BATCH.get(campaign.plan.site.scheduler)
    if scheduler is None:
        return False
    require_sound_images(campaign)
    before: list[str] = []
    for job in campaign.jobs:
        if blocks is not None and job.job not in blocks:
            continue
        chosen = [block.block for block in job.blocks] if blocks is None else blocks[job.job]
        directory = campaign.job_dir(job.job)
        try:
            job_id = scheduler.submit(directory, inherited(os.environ, chosen), before)
        except MissingToolError as error:
            raise MissingToolError(
                f"{error.what}; the scripts are in {campaign.directory / 'jobs'}",
                then=f"on a login node of the site: gpubench submit {campaign.directory}",
            ) from None
        say(f"job {job.job}: {job_id}")
        if scheduler.ONE_AT_A_TIME or campaign.plan.site.layout.one_machine:  # two at once would measure each other
            before = [job_id]
    waits = ", which hands over the jobs that wait, and brings results" if scheduler.ONE_AT_A_TIME else ""
    say(f"to see how it goes: gpubench status --watch {campaign.directory}{waits}")
    return True


def watch_jobs(campaign: Campaign) -> None:
    """Come back when no job of the campaign waits or runs; Ctrl-C ends the watching, not the jobs."""
    with interrupts() as interrupted, progress_for(campaign, joining=True) as progress:
        told: dict[str, str] = {}
        asked = 0.0
        while True:
            progress.look()
            if interrupted:
                raise InterruptedByUserError(
                    f"stopped watching by {interrupted[0]}; the jobs go on",
                    then=f"gpubench status {campaign.directory}",
                )
            if time.monotonic() - asked > LOOK_S:
                poll(campaign)
                states = job_states(campaign)
                for job, state in states.items():
                    words = " ".join(part for part in (state.word or state.phase, state.hosts) if part)
                    if told.get(job) != words:
                        told[job] = words
                        progress.tell(f"job {job} ({state.job_id}): {words}")
                if not any(state.alive for state in states.values()):
                    poll(campaign)
                    progress.look()
                    return
                asked = time.monotonic()
            time.sleep(0.5)


def cancel_jobs(campaign: Campaign) -> None:
    """End every job that waits or runs; all are tried, the first that couldn't be ended is raised."""
    scheduler = SCHEDULERS[campaign.plan.site.scheduler]
    failed: list[GpubenchError] = []
    alive = [job for job, state in job_states(campaign).items() if state.alive]
    for job in alive:
        try:
            scheduler.cancel(campaign.job_dir(job))
            say(f"job {job}: cancelled")
        except GpubenchError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    if not alive:
        say("no job waits or runs")
