"""``gpubench sites check --live``: a job that looks whether the site is as its profile says."""

from __future__ import annotations

import datetime as dt
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.cli.options import Asked
from gpubench.cli.say import say
from gpubench.cli.steps.images import obtain_images
from gpubench.cli.steps.placing import resolve, shared_paths
from gpubench.cli.steps.profiles import expanded, load_site
from gpubench.cli.steps.running import interrupts
from gpubench.errors import InterruptedByUserError, MissingToolError, PlanRefusedError, UsageError
from gpubench.files import write_atomically
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.plan.live_checks import Facts, check_images, check_nodes, parse_facts
from gpubench.plan.shared import require_shared
from gpubench.plan.site_checks import Finding, check_site
from gpubench.render import job_file, pack
from gpubench.render.check import INSIDE, JOB, render_check
from gpubench.render.job import OBJECTS
from gpubench.schedulers import DETACHED, JobState
from gpubench.schedulers.inherited import inherited

LOOK_S = 1.0
LATE_S = 35.0
"""NFS may hide a new file from another machine for half a minute."""


def check_live(name: str, settings: Sequence[str], *, nodes: int, ucx: str | None, outputs: Path | None) -> None:
    """Submit the job, wait for it, and say a line for each thing looked at.

    Raises:
        UsageError: the profile is wrong by itself, or its jobs wait in no queue.
        MissingToolError: the scheduler isn't here.
        SchedulerError: the job was refused.
        PlanRefusedError: the site isn't as the profile says.
        InterruptedByUserError: Ctrl-C; the job is cancelled.
    """
    site = load_site(name, list(settings))
    _refuse_wrong(site)
    image = _image(site, ucx) if ucx else None
    directory = _write(site, nodes, image, outputs)
    token = secrets.token_hex(8)
    write_atomically(directory / "jobs" / JOB / "from-login", token)
    state = _run(site, directory)
    wanted = nodes * (2 if image else 1) if state.word == "COMPLETED" else 0
    hosts, inside = _facts(directory, wanted)
    findings = [
        Finding(not state.end, f"{_asked_for(site)}: job {state.job_id} {state.end or 'ran'} on {state.hosts}"),
        *check_nodes(site, nodes, hosts, token),
        *check_images(site, hosts, inside if image else None),
    ]
    for finding in findings:
        say(str(finding))
    wrong = sum(finding.ok is False for finding in findings)
    if wrong:
        raise PlanRefusedError(
            f"site {site.name} isn't as its profile says in {wrong} of these lines",
            then=f"correct the profile, or the site; the job's log is in {directory / 'jobs' / JOB}",
        )
    shutil.rmtree(directory)


def _refuse_wrong(site: Site) -> None:
    if site.scheduler not in DETACHED:
        raise UsageError(f"site {site.name} has no queue; --live asks a scheduler that has one")
    wrong = [finding for finding in check_site(site) if finding.ok is False]
    if wrong:
        raise UsageError(f"site {site.name}: {wrong[0].what}", then="correct the profile first")
    if job_file(site.scheduler, resources.job_templates()) == OBJECTS:
        raise UsageError(
            f"site {site.name}: --live starts a script on the nodes, and here jobs are none",
            then="a small campaign tells the same: --suite verify",
        )
    submit = DETACHED[site.scheduler].SUBMIT
    if shutil.which(submit) is None:
        raise MissingToolError(
            f"there is no {submit} on this machine", then=f"run it on a login node of site {site.name}"
        )


def _image(site: Site, ucx: str) -> Image:
    found = obtain_images(site, [ucx], Asked(), build=False)[ucx]
    if found is None:
        raise PlanRefusedError(f"UCX {ucx} has no image for site {site.name}", then="build it, or leave --ucx out")
    return found[0]


def _write(site: Site, nodes: int, image: Image | None, outputs: Path | None) -> Path:
    above = outputs or expanded(site.paths.outputs, "paths.outputs", site)
    directory = above / "checks" / f"{site.name}-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S-%f}"
    require_shared("the check's directory", resolve(str(directory)), shared_paths(site))
    files = render_check(
        site,
        nodes,
        image,
        resources.job_templates(),
        inside=(resources.root() / "templates" / "common" / INSIDE).read_text(encoding="utf-8"),
        node_pyz=pack(resources.node_half()),
        gpubench=__version__,
    )
    for path, data in files.items():
        write_atomically(directory / path, data)
    (directory / "facts").mkdir()
    return directory


def _run(site: Site, directory: Path) -> JobState:
    """Submit and come back when the job has ended."""
    scheduler, job_dir = DETACHED[site.scheduler], directory / "jobs" / JOB
    said = ""
    with interrupts() as interrupted:
        job_id = scheduler.submit(job_dir, inherited(os.environ))
        while True:
            state = scheduler.state(job_dir)
            if interrupted:
                scheduler.cancel(job_dir)
                raise InterruptedByUserError(f"interrupted by {interrupted[0]}; job {job_id} is cancelled")
            words = " ".join(part for part in (state.word or state.phase, state.hosts) if part)
            if words != said:
                said = words
                say(f"job {job_id}: {words}")
            if not state.alive:
                return state
            time.sleep(LOOK_S)


def _facts(directory: Path, wanted: int) -> tuple[list[Facts], list[Facts]]:
    """What nodes left, on the host and inside the image; files of a job that went well are waited for a while."""
    deadline = time.monotonic() + LATE_S
    while len(list((directory / "facts").glob("[!.]*"))) < wanted and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return list(_read(directory, "host")), list(_read(directory, "inside"))


def _read(directory: Path, kind: str) -> Iterator[Facts]:
    for path in sorted((directory / "facts").glob(f"[!.]*.{kind}")):
        yield parse_facts(path.read_text(encoding="utf-8", errors="replace"))


def _asked_for(site: Site) -> str:
    asked = {"partition": site.batch.queue, "account": site.batch.account, "qos": site.batch.qos}
    given = [f"{name} {value}" for name, value in asked.items() if value]
    return ", ".join(given) or "the default partition and account"
