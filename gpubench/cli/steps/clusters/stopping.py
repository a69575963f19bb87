"""``gpubench cluster stop``: every job ended, nothing left, whatever had died before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gpubench.cli.say import say
from gpubench.cli.steps.clusters.submitting import job_state
from gpubench.errors import GpubenchError
from gpubench.render.cluster import SPEC
from gpubench.render.job import NODE_HALF
from gpubench.schedulers import ATTACHED, SCHEDULERS
from gpubench.store.clusters import Cluster


def stop_cluster(cluster: Cluster) -> None:
    """End all jobs: first that of the scheduler, which tells the others; all are tried.

    Raises:
        SchedulerError: the first one of those that couldn't be ended; the keys stay, for another try.
    """
    scheduler = SCHEDULERS[cluster.record.site.scheduler]
    failed: list[GpubenchError] = []
    for job in cluster.jobs:
        try:
            if job_state(cluster, job).alive:
                scheduler.cancel(cluster.job_dir(job))
                say(f"job {job.job}: ended")
        except GpubenchError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    sweep(cluster)
    say(f"cluster {cluster.record.name} is stopped")


def sweep(cluster: Cluster) -> None:
    """Take away what its jobs left here, and what lets anybody join. None of its jobs may live."""
    if cluster.record.site.scheduler in ATTACHED:
        _clean_machine(cluster)
    cluster.take_down()


def _clean_machine(cluster: Cluster) -> None:
    """Jobs ran on this machine: supervisors that were killed had no chance to clean up behind themselves."""
    jobs = [job for job in cluster.jobs if (cluster.job_dir(job) / SPEC).exists()]
    for job in jobs[:1]:
        words = [sys.executable, "-I", str(cluster.directory / NODE_HALF), "cluster", "--clean"]
        subprocess.run([*words, "--spec", str(cluster.job_dir(job) / SPEC)], check=False, stdin=subprocess.DEVNULL)
    places = {os.environ.get("SCRATCHDIR"), cluster.record.site.paths.scratch, tempfile.gettempdir()}
    for place in filter(None, places):
        for left in Path(os.path.expandvars(place)).glob(f"gpubench-{cluster.record.identity}-*"):
            shutil.rmtree(left, ignore_errors=True)
