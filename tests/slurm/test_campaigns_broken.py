"""Campaigns on a real Slurm whose hosts, jobs, queue or front end fail them."""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.campaigns import records
from tests.slurm.campaigns import Login, job_ids
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until
from tests.slurm.test_campaigns import leave_no_process, left_on, until_running

pytestmark = pytest.mark.system


def test_a_lost_host_is_the_reason_of_lost_runs_and_resume_replaces_them(slurm: SlurmCluster, login: Login) -> None:
    campaign = login.plan("--nodes", "2", reps=60)
    login.run("submit", campaign)
    number = job_ids(campaign)["j001-n2"]
    until_running(login, campaign)
    slurm.crash("n2")
    try:
        assert slurm.job(number)["NodeList"] == "n[1-2]"
        slurm.wait_job(number, {"NODE_FAIL"})
        said = login.run("status", campaign, code=4)
    finally:
        slurm.revive("n2")
    assert re.search(rf"^job j001-n2 \({number}\): NODE_FAIL.*: NodeDown on n\[1-2\]", said)
    first, second = (line for line in said.splitlines() if line.startswith("block 1"))
    assert "lost: lost node rank 1" in first or "NODE_FAIL" in first
    assert re.search(r"lost: job j001-n2 ended \(NODE_FAIL.*: NodeDown\) before this run started", second)
    leave_no_process(slurm)
    slurm.wait_idle(["n2"])
    assert login.run("submit", "--campaign", campaign).startswith("job j001-n2: ")
    assert job_ids(campaign)["j001-n2"] != number
    said = login.run("status", "--watch", campaign)
    assert said.endswith("2 ok of 2 runs\n")


def test_runs_are_lost_where_one_of_two_nodes_scratch_directories_is_full_and_are_repeated_when_there_is_room(
    slurm: SlurmCluster, login: Login
) -> None:
    def on(name: str, *words: str) -> None:
        subprocess.run(["nsenter", "--mount", "--pid", f"--target={slurm.hosts[name].init}", *words], check=True)

    for name in slurm.hosts:
        on(name, "mkdir", "/tmp/small")
    on("n2", "mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", "/tmp/small")
    try:
        campaign = login.plan("--nodes", "2", "--set", "paths.scratch=/tmp/small")
        login.run("submit", campaign)
        said = login.run("status", "--watch", campaign, code=4)
    finally:
        on("n2", "umount", "--lazy", "/tmp/small")
    first, second = re.findall(r"^block 1 \w \(\w+\): (.*)$", said, re.MULTILINE)
    assert re.fullmatch("lost: .*, and its node can't write /tmp/small/gpubench-.*: No space left on device", first)
    assert second == "skipped: the run before it ended with exit code 40: a node can't be used"
    leave_no_process(slurm)
    assert login.run("submit", "--campaign", campaign).startswith("job j001-n2: ")
    assert login.run("status", "--watch", campaign).endswith("2 ok of 2 runs\n")


def test_a_job_ends_in_order_before_its_time_is_over(login: Login) -> None:
    limits = ("--set", "limits.job=1m", "--set", "batch.warning=5s", "--set", "estimates.run=1s")
    campaign = login.plan(*limits, "--blocks", "2", reps=5000)
    login.run("submit", campaign)
    said = login.run("status", "--watch", campaign, code=4)
    assert "FAILED, exit code 130: it was asked to end" in said
    (record,) = records(campaign).values()
    assert (record["status"], record["reason"]) == ("skipped", "interrupted by SIGTERM")
    assert said.count("lost: job j001-n1 ended (FAILED, exit code 130: it was asked to end") == 3


@pytest.mark.long
def test_a_job_that_slurm_ends_at_its_limit_is_said_so_and_its_runs_are_planned_again(
    slurm: SlurmCluster, login: Login
) -> None:
    campaign = login.plan("--nodes", "2", reps=5000)
    login.run("submit", campaign)
    until_running(login, campaign)
    number = job_ids(campaign)["j001-n2"]
    (script,) = (pid for pid, line in slurm.processes_on("n1").items() if "slurm_script" in line)
    os.kill(script, signal.SIGSTOP)  # hears no warning
    # A time limit is a number of minutes; an end may be any second. Slurm looks every half minute.
    end = dt.datetime.now() + dt.timedelta(seconds=10)
    slurm.say("scontrol", "update", f"JobId={number}", f"EndTime={end:%Y-%m-%dT%H:%M:%S}")
    slurm.wait_job(number, {"TIMEOUT"})
    said = login.run("status", campaign, code=4)
    assert re.search(rf"^job j001-n2 \({number}\): TIMEOUT.*: TimeLimit on n\[1-2\]$", said, re.MULTILINE), said
    first, second = (line for line in said.splitlines() if line.startswith("block 1"))
    assert re.search(r"skipped: (node rank 1: )?interrupted by SIGTERM|lost: job j001-n2 ended \(TIMEOUT", first), said
    assert re.search(r"lost: job j001-n2 ended \(TIMEOUT.*: TimeLimit\) before this run started", second), said
    until(lambda: left_on(slurm) == {}, "the end of the job's processes")
    assert login.run("submit", "--campaign", campaign).startswith("job j001-n2: ")
    assert job_ids(campaign)["j001-n2"] != number
    login.run("cancel", campaign)


@pytest.mark.long
def test_a_front_end_that_is_killed_before_it_hears_the_number_leaves_a_job_that_is_found(
    slurm: SlurmCluster, login: Login
) -> None:
    campaign = login.plan(reps=30)  # so many that it still runs when we come again
    path = command(login.directory, "sbatch", f'{shutil.which("sbatch")} "$@" >/dev/null; kill -9 $PPID')
    login.run("submit", campaign, code=-signal.SIGKILL, env={"PATH": f"{path}{os.environ['PATH']}"})
    assert job_ids(campaign) == {"j001-n1": ""}
    assert "is still running" in login.run("submit", campaign, code=2)
    assert login.run("status", "--watch", campaign).endswith("2 ok of 2 runs\n")
    slurm.controller_down()
    try:
        assert "is Slurm up?" in login.run("status", campaign, code=7).replace("the controller", "Slurm")
        assert login.run("compare", campaign, code=21).count("inconclusive")
    finally:
        slurm.controller_up()


def command(directory: Path, name: str, body: str) -> str:
    """A PATH in which ``name`` is another program first."""
    (directory / "bin").mkdir()
    (directory / "bin" / name).write_text(f"#!/bin/bash\n{body}\n")
    (directory / "bin" / name).chmod(0o755)
    return f"{directory / 'bin'}:"
