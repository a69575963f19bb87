"""``gpubench cluster stop``: every job ended, nothing left, whatever had died before."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gpubench.cli.campaign.running import LOOK_S
from gpubench.cli.clusters.jobs import job_state
from gpubench.cli.say import say
from gpubench.errors import GpubenchError
from gpubench.files import write_atomically
from gpubench.model.cluster import ClusterJob
from gpubench.polling import poll_until
from gpubench.render.cluster import SPEC
from gpubench.render.planned import NODE_HALF
from gpubench.schedulers import LOCAL, RETAINED, SCHEDULERS
from gpubench.spec.cluster import READY, REQUESTS
from gpubench.store.clusters import Cluster


def stop_cluster(cluster: Cluster) -> None:
    """End all jobs: rank 0 is asked, and tells the others; what doesn't end by itself is ended by its scheduler.

    Raises:
        SchedulerError: the first one of those that couldn't be ended or forgotten; the keys stay, for another try.
    """
    scheduler = SCHEDULERS[cluster.record.site.scheduler]
    failed: list[GpubenchError] = []
    _ask(cluster)
    for job in cluster.jobs:
        try:
            if job_state(cluster, job).alive:
                scheduler.cancel(cluster.job_dir(job))
                say(f"job {job.job}: cancelled")
        except GpubenchError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    sweep(cluster)
    say(f"cluster {cluster.record.name} is stopped")


def _ask(cluster: Cluster) -> None:
    """Have rank 0 end its cluster in order, where it is there to be asked; jobs that still wait would come too late."""
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
            say(f"job {job.job}: ended")
        return not running

    poll_until(all_ended, interval_s=LOOK_S, timeout_s=cluster.record.site.limits.stop)


def sweep(cluster: Cluster) -> None:
    """Take away what its jobs left here, and what lets anybody join. None of its jobs may live."""
    if cluster.record.site.scheduler in LOCAL:
        _clean_machine(cluster)
    for job in cluster.jobs:
        put_away(cluster, job)
    cluster.take_down()


def put_away(cluster: Cluster, job: ClusterJob) -> None:
    """Have the scheduler forget a job that has ended, where it would keep it."""
    name = cluster.record.site.scheduler
    if name in RETAINED:
        RETAINED[name].remove(cluster.job_dir(job))


def _clean_machine(cluster: Cluster) -> None:
    """Jobs ran on this machine: supervisors that were killed had no chance to clean up behind themselves."""
    jobs = [job for job in cluster.jobs if (cluster.job_dir(job) / SPEC).exists()]
    for job in jobs[:1]:
        words = [sys.executable, "-I", str(cluster.directory / NODE_HALF), "cluster", "--clean"]
        subprocess.run([*words, "--spec", str(cluster.job_dir(job) / SPEC)], check=False, stdin=subprocess.DEVNULL)
    places = {cluster.record.site.paths.scratch, tempfile.gettempdir()}
    for place in filter(None, places):
        for left in Path(os.path.expandvars(place)).glob(f"gpubench-{cluster.record.identity}-*"):
            shutil.rmtree(left, ignore_errors=True)
