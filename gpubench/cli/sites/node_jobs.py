"""A small job on a site's nodes that is no campaign: written, run, and what its nodes left in ``facts/``."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench import resources
from gpubench.cli.campaign.preflight import resolve, shared_paths
from gpubench.cli.campaign.running import interrupts
from gpubench.cli.say import say
from gpubench.cli.sites.profiles import expanded
from gpubench.errors import InterruptedByUserError, MissingToolError, SchedulerError, UsageError
from gpubench.files import write_atomically
from gpubench.model.site import Site
from gpubench.plan.site_checks import check_site, require_shared
from gpubench.polling import poll_until
from gpubench.render import job_file
from gpubench.render.check import JOB
from gpubench.render.job import OBJECTS
from gpubench.schedulers import BATCH, JobState
from gpubench.schedulers.client import inherited

LOOK_S = 1.0
LATE_S = 35.0
"""NFS may hide a new file from another machine for half a minute."""


def refuse_wrong(site: Site, command: str, *, instead: str) -> None:
    """Refuse a profile that is wrong by itself or starts no script on nodes, and a machine that can't submit.

    Args:
        site: the profile.
        command: who asks, for the error's words.
        instead: what to do where jobs are no scripts.

    Raises:
        UsageError: the profile.
        MissingToolError: the scheduler's command isn't here.
    """
    wrong = [finding for finding in check_site(site) if finding.ok is False]
    if wrong:
        raise UsageError(f"site {site.name}: {wrong[0].what}", then="correct the profile first")
    if job_file(site.scheduler, resources.job_templates()) == OBJECTS:
        raise UsageError(
            f"site {site.name}: {command} starts a script on the nodes, and here jobs are none", then=instead
        )
    if site.scheduler in BATCH and shutil.which(submit := BATCH[site.scheduler].SUBMIT) is None:
        raise MissingToolError(
            f"there is no {submit} on this machine", then=f"run it on a login node of site {site.name}"
        )


def write(site: Site, what: str, files: Mapping[str, bytes], outputs: Path | None) -> Path:
    """Write the job's files below ``outputs/<what>``, where all nodes see them; the directory."""
    above = outputs or expanded(site.paths.outputs, "paths.outputs", site)
    directory = above / what / f"{site.name}-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S-%f}"
    require_shared(f"the directory of {what}", resolve(str(directory)), shared_paths(site))
    for path, data in files.items():
        write_atomically(directory / path, data)
    (directory / "facts").mkdir()
    return directory


def run(site: Site, directory: Path) -> JobState:
    """Submit the job, and come back when it has ended.

    Raises:
        SchedulerError: the job was refused.
        InterruptedByUserError: Ctrl-C; the job is cancelled.
    """
    scheduler, job_dir = BATCH[site.scheduler], directory / "jobs" / JOB
    said = ""

    def look() -> JobState:
        nonlocal said
        state = scheduler.state(job_dir)
        if interrupted:
            scheduler.cancel(job_dir)
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}; job {job_id} is cancelled")
        words = " ".join(part for part in (state.word or state.phase, state.hosts) if part)
        if words != said:
            said = words
            say(f"job {job_id}: {words}")
        return state

    with interrupts() as interrupted:
        job_id = scheduler.submit(job_dir, inherited(os.environ))
        return poll_until(look, lambda state: not state.alive, interval_s=LOOK_S)


def run_here(directory: Path) -> None:
    """Run the script of a site without a queue: its launcher reaches the nodes.

    Raises:
        SchedulerError: it failed; its own words stand above.
    """
    code = subprocess.run(["bash", "job.sh"], cwd=directory / "jobs" / JOB, check=False).returncode
    if code:
        raise SchedulerError(f"{directory / 'jobs' / JOB / 'job.sh'} ended with exit code {code}")


def left_by_nodes(directory: Path, kind: str, wanted: int) -> Iterator[tuple[str, str]]:
    """Names of the nodes and what each left; the files of a job that went well are waited for a while."""
    facts = directory / "facts"
    found = poll_until(
        lambda: sorted(facts.glob(f"[!.]*.{kind}")),
        lambda found: len(found) >= wanted,
        interval_s=LOOK_S,
        timeout_s=LATE_S,
    )
    for path in found:
        yield path.name.removesuffix(f".{kind}"), path.read_text(encoding="utf-8", errors="replace")
