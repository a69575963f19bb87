"""``gpubench cluster`` on a real Slurm: started, grown, shrunk, killed, stopped, and nothing left."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.slurm.campaigns import UCX, Login
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import NAMES, until
from tests.slurm.test_campaigns import leave_no_process

pytestmark = pytest.mark.system

START = (
    *("--site", "local-slurm", "--ucx", UCX, "--protocol", "tcp"),
    *("--workers", "1", "--time", "10m", "--name", "mine"),
)


def numbers(directory: Path) -> list[str]:
    """Slurm's, in the order of the jobs."""
    return [json.loads(path.read_text())["job_id"] for path in sorted(directory.glob("jobs/*/submitted.json"))]


def left_in(directory: Path) -> set[str]:
    """What stands in a stopped cluster's directory."""
    return {path.name for path in directory.iterdir()}


def test_a_cluster_is_started_grown_shrunk_and_stopped_and_a_killed_job_is_seen(
    slurm: SlurmCluster, login: Login
) -> None:
    said = login.run("cluster", "start", *START, "--nodes", "1")
    directory = login.directory / "outputs" / "clusters" / "mine"
    assert "job j001-n1: 1 worker registered, first after" in said
    assert f"client = Client(scheduler_file='{directory}/scheduler.json')" in said

    said = login.run("cluster", "grow", "+2")
    assert "2 workers registered, first after" in said
    assert said.endswith("3 workers are connected\n")
    assert "ready, 3 of 3 workers on 3 nodes" in login.run("cluster", "status")

    assert "no set of jobs has 1 node in total: there is j002-n2 (2)" in login.run("cluster", "shrink", "-1", code=2)
    said = login.run("cluster", "shrink", "-2")
    assert said.startswith("2 workers retired")
    assert said.endswith("1 worker is connected\n")
    assert slurm.job(numbers(directory)[1])["JobState"] == "COMPLETED"
    assert "only the job with the scheduler is left" in login.run("cluster", "shrink", "-1", code=2)

    login.run("cluster", "grow", "+1")
    third = numbers(directory)[2]
    lines = slurm.processes_on(slurm.job(third)["NodeList"])
    os.kill(
        next(pid for pid, line in lines.items() if "node.pyz cluster" in line and "srun" not in line), signal.SIGKILL
    )
    slurm.wait_job(third)
    said = login.run("cluster", "status", code=4)
    assert "job j003-n1 has ended: FAILED" in said
    assert "exit code 137" in said

    login.run("cluster", "grow", "+1")
    said = login.run("cluster", "stop")
    assert sorted(said.splitlines()) == ["cluster mine is stopped", "job j001-n1: ended", "job j004-n1: ended"]
    assert [slurm.job(numbers(directory)[at])["JobState"] for at in (0, 3)] == ["COMPLETED"] * 2
    assert "it has been stopped" in login.run("cluster", "status", "mine", code=4)
    leave_no_process(slurm)
    gone = {"token", "scheduler.json", "tls"}
    assert not gone & left_in(directory)
    assert not list(directory.glob(".rendezvous-*"))


@pytest.mark.long
def test_a_killed_scheduler_is_told_and_its_cluster_still_stopped(slurm: SlurmCluster, login: Login) -> None:
    login.run("cluster", "start", *START, "--nodes", "2")
    directory = login.directory / "outputs" / "clusters" / "mine"
    lines = {pid: line for name in NAMES for pid, line in slurm.processes_on(name).items()}
    of_scheduler = ("--role scheduler", "dask scheduler")
    os.kill(next(pid for pid, line in lines.items() if any(name in line for name in of_scheduler)), signal.SIGKILL)
    until(lambda: slurm.job(numbers(directory)[0])["JobState"] == "FAILED", "the job's end", pause=0.2)
    assert "it has ended: the scheduler ended: killed by SIGKILL" in login.run("cluster", "status", code=4)
    login.run("cluster", "stop")
    leave_no_process(slurm)
