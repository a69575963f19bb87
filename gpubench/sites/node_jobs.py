"""Small jobs on a site that are no campaign: ``gpubench sites check --live`` and ``sites clean``."""

import contextlib
import datetime as dt
import glob
import logging
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.campaign.interrupts import interrupts
from gpubench.campaign.preflight import require_account, resolve, shared_paths
from gpubench.errors import (
    GpubenchError,
    InterruptedByUserError,
    MissingToolError,
    PlanRefusedError,
    SchedulerError,
    UsageError,
)
from gpubench.files import locked, write_atomically, writing
from gpubench.images.obtain import obtain_images
from gpubench.model.image import Image
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.plan.check_result import CheckResult
from gpubench.plan.node_checks import check_images, check_nodes, parse_facts
from gpubench.plan.shared_paths import require_shared
from gpubench.plan.site_checks import check_site
from gpubench.polling import poll_until
from gpubench.render.check import FACTS, INSIDE, JOB, LEFT, render_check, render_clean
from gpubench.render.job import OBJECTS, job_file
from gpubench.render.node_half import pack
from gpubench.resources.profiles import load_site, outputs_of
from gpubench.schedulers import BATCH, JobState
from gpubench.schedulers.batch import BatchScheduler, inherited

_log = logging.getLogger(__name__)

_STAMP = "[0-9]" * 8 + "-[0-9]*"
LOOK_S = 1.0
DOUBTS = 60
"""So many looks in a row may find no trace of the job."""
LATE_S = 35.0
"""NFS may hide a new file from another machine for half a minute."""


def refuse_wrong(site: Site, command: str, *, instead: str) -> None:
    """Refuse a profile that is wrong by itself or starts no script on nodes, and a machine that can't submit.

    Args:
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
            f"site {site.name}: {command} starts a script on the nodes, and this site's jobs are no scripts",
            then=instead,
        )
    if site.scheduler in BATCH and shutil.which(submit := BATCH[site.scheduler].SUBMIT) is None:
        raise MissingToolError(
            f"there is no {submit} on this machine", then=f"run it on a login node of site {site.name}"
        )
    require_account(site)


@contextlib.contextmanager
def job_files(site: Site, what: str, files: Mapping[str, bytes], outputs: Path | None) -> Iterator[Path]:
    """Write the job's files below ``outputs/<what>``, where all nodes see them; yields their directory.

    They are removed with those of earlier jobs that have ended. Where the block fails they stay, since the job's log,
    which may say why, is among them.
    """
    directory = outputs_of(site, outputs) / what / f"{site.name}-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S-%f}"
    require_shared(f"the directory of {what}", resolve(str(directory)), shared_paths(site))
    with writing(directory):
        (directory / FACTS).mkdir(parents=True)
    with locked(directory):
        for path, data in files.items():
            write_atomically(directory / path, data)
        yield directory
        shutil.rmtree(directory)
    for leftover in directory.parent.glob(f"{glob.escape(site.name)}-{_STAMP}"):
        with contextlib.suppress(BlockingIOError, FileNotFoundError, GpubenchError), locked(leftover, wait=False):
            state = BATCH[site.scheduler].state(leftover / "jobs" / JOB) if site.scheduler in BATCH else None
            if state is None or state.over:
                shutil.rmtree(leftover)


def run(site: Site, directory: Path) -> JobState:
    """Submit the job, and come back when it has ended.

    Raises:
        SchedulerError: the job was refused, or nobody knows for a minute whether it has ended.
        InterruptedByUserError: Ctrl-C; the job is cancelled.
    """
    scheduler, job_dir = BATCH[site.scheduler], directory / "jobs" / JOB
    last_text, doubts = "", 0

    def look() -> JobState:
        nonlocal last_text, doubts
        state = scheduler.state(job_dir)
        doubts = doubts + 1 if state.doubt else 0
        if doubts > DOUBTS:
            raise SchedulerError(f"job {job_id}: {state.doubt}", then=f"its log is in {job_dir}")
        if interrupted:
            scheduler.cancel(job_dir)
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}; job {job_id} is cancelled")
        if state.text != last_text:
            last_text = state.text
            _log.info(f"job {job_id}: {last_text}")
        return state

    with interrupts() as interrupted:
        job_id = scheduler.submit(job_dir, inherited(os.environ))
        return poll_until(look, lambda state: state.over, interval_s=LOOK_S)


def left_by_nodes(directory: Path, kind: str, count: int) -> Iterator[tuple[str, str]]:
    """Names of the nodes and what each left; the files of a job that went well are waited for a while."""
    facts = directory / FACTS
    paths = poll_until(
        lambda: sorted(facts.glob(f"[!.]*.{kind}")),
        lambda paths: len(paths) >= count,
        interval_s=LOOK_S,
        timeout_s=LATE_S,
    )
    for path in paths:
        yield path.name.removesuffix(f".{kind}"), path.read_text(encoding="utf-8", errors="replace")


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
    if site.scheduler not in BATCH:
        raise UsageError(f"site {site.name} has no queue, and --live needs a scheduler with a queue")
    refuse_wrong(site, "--live", instead="a small campaign shows the same: --suite verify")
    image = _image(site, ucx) if ucx else None
    files = render_check(
        site,
        nodes,
        image,
        resources.job_templates(),
        inside=(resources.root() / "templates" / "common" / INSIDE).read_text(encoding="utf-8"),
        node_pyz=pack(resources.node_half()),
        gpubench=__version__,
    )
    with job_files(site, "checks", files, outputs) as directory:
        token = secrets.token_hex(8)
        write_atomically(directory / "jobs" / JOB / "from-login", token)
        state = run(site, directory)
        answers = nodes if state.word == "COMPLETED" else 0
        hosts = [parse_facts(text) for _, text in left_by_nodes(directory, "host", answers)]
        inside = [parse_facts(text) for _, text in left_by_nodes(directory, "inside", answers if image else 0)]
        findings = [
            CheckResult(
                not state.end, f"{_batch_request(site)}: job {state.job_id} {state.end or 'ran'} on {state.hosts}"
            ),
            *check_nodes(site, nodes, hosts, token),
            *check_images(site, hosts, inside if image else None),
        ]
        for finding in findings:
            _log.info(str(finding))
        wrong = sum(finding.ok is False for finding in findings)
        if wrong:
            raise PlanRefusedError(
                f"site {site.name} isn't as its profile says in {wrong} of these lines",
                then=f"correct the profile, or the site; the job's log is in {directory / 'jobs' / JOB}",
            )


def _image(site: Site, ucx: str) -> Image:
    image_and_manifest = obtain_images(site, [ucx])[ucx]
    if image_and_manifest is None:
        raise PlanRefusedError(f"UCX {ucx} has no image for site {site.name}", then="build it, or leave --ucx out")
    return image_and_manifest[0]


def _batch_request(site: Site) -> str:
    requested = {"partition": site.batch.queue, "account": site.batch.account, "qos": site.batch.qos}
    given = [f"{name} {value}" for name, value in requested.items() if value]
    return ", ".join(given) or "the default partition and account"


def clean_site(name: str, settings: Sequence[str], *, nodes: int | None, remove: bool, outputs: Path | None) -> None:
    """Run the job on so many nodes (None: all that take jobs), and say a line for each thing found.

    Raises:
        UsageError: the profile is wrong by itself, its jobs are no scripts, or its scheduler can't count its nodes.
        MissingToolError: the scheduler isn't here.
        SchedulerError: the job was refused or failed, or not every node answered.
        PlanRefusedError: something can't be removed.
        InterruptedByUserError: Ctrl-C; the job is cancelled.
    """
    site = load_site(name, list(settings))
    refuse_wrong(site, "sites clean", instead="pods leave nothing on the nodes")
    if nodes is None:
        nodes = _every_node(site)
    files = render_clean(site, nodes, resources.job_templates(), remove=remove, gpubench=__version__)
    with job_files(site, "cleanings", files, outputs) as directory:
        log = directory / "jobs" / JOB
        if site.scheduler in BATCH:
            state = run(site, directory)
            if state.end:
                raise SchedulerError(f"job {state.job_id} {state.end} on {state.hosts}", then=f"its log is in {log}")
        else:  # the launcher of a site without a queue reaches the nodes; the script's own messages are printed
            code = subprocess.run(["bash", "job.sh"], cwd=log, check=False).returncode
            if code:
                raise SchedulerError(f"{log / 'job.sh'} ended with exit code {code}")
        seen = dict(left_by_nodes(directory, LEFT, nodes))
        findings = [finding for node, text in seen.items() for finding in _left(node, text)]
        for _, line in findings:
            _log.info(line)
        if len(seen) != nodes:
            names = f": {', '.join(seen)}" if seen else ""
            raise SchedulerError(f"{len(seen)} of {nodes} nodes answered{names}", then=f"the job's log is in {log}")
        kept = sum(became == "kept" for became, _ in findings)
        if kept:
            why = f"the job's log, which says why, is in {log}"
            raise PlanRefusedError(f"{kept} of these can't be removed", then=why)
    left = len(findings) if not remove else 0
    how = "; remove it with --remove" if left else ""
    _log.info(f"{left or 'nothing'} left by dead jobs on {', '.join(seen)}{how}")


def _every_node(site: Site) -> int:
    """How many nodes take jobs; those that take none are said."""
    scheduler = BATCH.get(site.scheduler)
    if not isinstance(scheduler, BatchScheduler):
        return 1
    usable, others = scheduler.count_nodes(site.batch.queue)
    if others:
        _log.info(f"{counted(others, 'node')} that take{'s' if others == 1 else ''} no jobs now: not looked at")
    if not usable:
        raise SchedulerError(f"no node of site {site.name} takes jobs now")
    return usable


def _left(node: str, text: str) -> Iterator[tuple[str, str]]:
    """Of each thing on a node: ``there``, ``removed``, or ``kept`` where it can't be removed, and a line about it."""
    ends = {"there": "", "removed": ": removed"}
    for line in text.splitlines():
        became, kib, what, where = line.split("\t", 3)
        size = f", {format_bytes(int(kib) * 1024)}" if kib else ""
        yield became, f"{node}: {what} {where}{size}" + ends.get(became, ": can't be removed")
