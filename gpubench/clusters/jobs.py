"""A cluster's jobs: written, handed to the scheduler, waited for, ended."""

import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gpubench import resources
from gpubench.campaign.ending import declare_ended
from gpubench.campaign.interrupts import LOOK_S, interrupts
from gpubench.clusters import background
from gpubench.errors import GpubenchError, IncompleteError, InterruptedByUserError, MissingToolError, SchedulerError
from gpubench.files import write_atomically
from gpubench.model.cluster import ClusterJob
from gpubench.node.spec.cluster import READY, REQUESTS, ClusterState
from gpubench.polling import poll_until
from gpubench.render.cluster import SPEC, render_cluster_job
from gpubench.render.node_half import NODE_HALF
from gpubench.schedulers import BATCH, LOCAL, RETAINED, SCHEDULERS, JobState
from gpubench.schedulers.batch import inherited
from gpubench.store.clusters import Cluster

_log = logging.getLogger(__name__)


def submit_job(cluster: Cluster, job: ClusterJob, deadline: float) -> None:
    """Write the job's files and hand it over.

    Raises:
        MissingToolError: the scheduler isn't here, or another job holds this machine past the deadline.
        SchedulerError: the job is refused.
    """
    node_half = hashlib.sha256((cluster.directory / NODE_HALF).read_bytes()).hexdigest()
    files = render_cluster_job(cluster.record, job, resources.job_templates(), node_half)
    for path, data in files.items():
        write_atomically(cluster.directory / path, data)
    name, directory = cluster.record.site.scheduler, cluster.job_dir(job)
    if name in BATCH:
        _log.info(f"job {job.job}: {BATCH[name].submit(directory, inherited(os.environ))}")
        return
    if job.leads:
        stop = f"gpubench cluster stop {cluster.record.name}"
        with LOCAL[name].acquire_machine(directory, _patience(deadline), stop) as lock:
            _begun(cluster, job, background.start(name, directory, lock))
    else:  # beside the one that holds the machine
        _begun(cluster, job, background.start(name, directory, None))
    _log.info(f"job {job.job}: {job_state(cluster, job).job_id}")


def _begun(cluster: Cluster, job: ClusterJob, front_end: subprocess.Popen[bytes]) -> None:
    """Come back when the job is known to have been started."""

    def submitted() -> bool:
        if job_state(cluster, job).phase != "unsubmitted":
            return True
        if front_end.poll() is not None:
            log = cluster.job_dir(job) / background.LOG
            raise MissingToolError(f"job {job.job} couldn't be started: see {log}")
        return False

    poll_until(submitted, interval_s=0.05)


def _patience(deadline: float) -> Callable[[str], None]:
    holders: set[str] = set()

    def waiting(holder: str) -> None:
        if holder not in holders:
            holders.add(holder)
            _log.info(f"waiting for this machine: {holder} runs on it")
        if time.monotonic() > deadline:
            raise MissingToolError(
                f"this machine is busy: {holder}", then="wait until it is free, or give a longer --wait"
            )

    return waiting


def job_state(cluster: Cluster, job: ClusterJob) -> JobState:
    return SCHEDULERS[cluster.record.site.scheduler].state(cluster.job_dir(job))


def wait_for(
    cluster: Cluster, job: ClusterJob, deadline: float, ready: Callable[[ClusterState], bool], *, late: str = ""
) -> ClusterState:
    """Return when ``ready`` is true of the cluster's state; ``late`` says what it isn't at the deadline.

    Raises:
        IncompleteError: the job ended before, or the deadline is over; it waits or runs on.
        InterruptedByUserError: Ctrl-C; the job waits or runs on.
    """
    last_standing, asked_at = "", 0.0
    with interrupts() as interrupted:
        while True:
            with contextlib.suppress(OSError):
                os.scandir(cluster.directory).close()  # an NFS client then drops what it believes of missing names
            state = cluster.state()
            if state is not None and ready(state):
                return state
            if time.monotonic() - asked_at > 1.0:
                asked_at, now = time.monotonic(), job_state(cluster, job)
                standing = now.standing
                if standing != last_standing and (now.reason or now.phase != "running"):
                    _log.info(f"job {job.job} ({now.job_id}): {standing}")
                last_standing = standing
                if now.over:
                    raise IncompleteError(_why(cluster, job, now), then=f"see {cluster.job_dir(job)}")
            how = f"gpubench cluster status {cluster.record.name}"
            if interrupted:
                raise InterruptedByUserError(f"stopped waiting by {interrupted[0]}; the cluster continues", then=how)
            if time.monotonic() > deadline:
                raise IncompleteError(
                    late or f"job {job.job} isn't ready yet ({last_standing}), and continues", then=how
                )
            time.sleep(LOOK_S)


def _why(cluster: Cluster, job: ClusterJob, now: JobState) -> str:
    state = cluster.state()
    reason = state.reason if state is not None and job.leads else ""
    lines = state.events[-1:] if state is not None else []
    last = "; ".join(str(event["what"]) for event in lines)
    return f"job {job.job} ended: {reason or now.end or now.word}{f' ({last})' if last else ''}"


def stop_cluster(cluster: Cluster, ended: str | None = None) -> None:
    """End all jobs: rank 0 is asked, and tells the others; what doesn't end by itself is ended by its scheduler.

    Args:
        ended: id of a job that has ended as the user says, where its scheduler can't tell.

    Raises:
        UsageError: the scheduler knows how the job ``ended`` stands.
        SchedulerError: the first one of those that couldn't be ended or forgotten; the keys stay, for another try.
    """
    scheduler = SCHEDULERS[cluster.record.site.scheduler]
    if ended is not None:
        declare_ended(scheduler, {job.job: cluster.job_dir(job) for job in cluster.jobs}, ended)
    failed: list[GpubenchError] = []
    _ask(cluster)
    for job in cluster.jobs:
        try:
            state = job_state(cluster, job)
            if state.doubt:
                way = f"gpubench cluster stop {cluster.record.name} --ended {state.job_id or job.job}"
                raise SchedulerError(f"job {job.job}: {state.doubt}", then=f"if you know that it has ended: {way}")
            if state.alive:
                scheduler.cancel(cluster.job_dir(job))
                _log.info(f"job {job.job}: cancelled")
        except GpubenchError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    sweep(cluster)
    _log.info(f"cluster {cluster.record.name} is stopped")


def _ask(cluster: Cluster) -> None:
    """Ask rank 0, if it is running, to end its cluster in order; waiting jobs would start too late."""
    state = cluster.state()
    if state is None or state.phase != READY or job_state(cluster, cluster.jobs[0]).phase != "running":
        return
    # Before they are asked: a scheduler that answers late would say that a job has ended, and nobody would be told.
    running = [job for job in cluster.jobs if job_state(cluster, job).phase == "running"]
    write_atomically(
        cluster.directory / REQUESTS / f"{secrets.token_hex(8)}.json", json.dumps({"stop": "gpubench cluster stop"})
    )

    def all_ended() -> bool:
        for job in [job for job in running if job_state(cluster, job).phase == "ended"]:
            running.remove(job)
            _log.info(f"job {job.job}: ended")
        return not running

    poll_until(all_ended, interval_s=LOOK_S, timeout_s=cluster.record.site.limits.stop)


def sweep(cluster: Cluster) -> None:
    """Remove what its jobs left here, and the keys and addresses. None of its jobs may be running."""
    if cluster.record.site.scheduler in LOCAL:
        _clean_machine(cluster)
    for job in cluster.jobs:
        put_away(cluster, job)
    cluster.take_down()


def put_away(cluster: Cluster, job: ClusterJob) -> None:
    """Remove a job that has ended from its scheduler, if the scheduler keeps such jobs."""
    name = cluster.record.site.scheduler
    if name in RETAINED:
        RETAINED[name].remove(cluster.job_dir(job))


def _clean_machine(cluster: Cluster) -> None:
    """Clean up after jobs on this machine whose supervisors were killed."""
    jobs = [job for job in cluster.jobs if (cluster.job_dir(job) / SPEC).exists()]
    for job in jobs[:1]:
        command = [sys.executable, "-I", str(cluster.directory / NODE_HALF), "cluster", "--clean"]
        subprocess.run([*command, "--spec", str(cluster.job_dir(job) / SPEC)], check=False, stdin=subprocess.DEVNULL)
    places = {cluster.record.site.paths.scratch, tempfile.gettempdir()}
    for place in filter(None, places):
        for left in Path(os.path.expandvars(place)).glob(f"gpubench-{cluster.record.identity}-*"):
            shutil.rmtree(left, ignore_errors=True)
