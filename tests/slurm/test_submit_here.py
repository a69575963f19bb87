"""``gpubench submit --here``: a campaign on nodes that a user's own salloc holds, on a real Slurm."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import GPUBENCH
from tests.slurm.campaigns import Login, job_ids
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until

pytestmark = pytest.mark.system


@pytest.fixture
def login(slurm: SlurmCluster, shared: Path) -> Login:
    """Root, whose own images every host sees."""
    return Login(slurm, shared, Path.home() / ".cache")


@pytest.fixture
def allocation(slurm: SlurmCluster) -> Iterator[dict[str, str]]:
    """One held node, and what the shell of its salloc has in its environment."""
    said = slurm.run(["salloc", "--no-shell", "--nodes=1"]).stderr
    number = said.partition("Granted job allocation ")[2].split()[0]
    yield {"SLURM_JOB_ID": number, "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1"}
    slurm.say("scancel", number)


def inside(login: Login, nodes: int, *words: str | Path) -> subprocess.CompletedProcess[str]:
    allocate = ["salloc", "--quiet", f"--nodes={nodes}", GPUBENCH, *words]
    return login.slurm.run(allocate, cwd=login.directory, timeout=240)


def runs(campaign: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in campaign.glob("runs/*/run.json")]


def test_a_campaign_runs_on_the_nodes_of_an_allocation_and_ends_with_it_still_held(
    slurm: SlurmCluster, login: Login
) -> None:
    campaign = login.plan("--nodes", "1 2")
    done = inside(login, 2, "submit", "--here")  # the newest campaign
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted((run["nodes"], run["status"]) for run in runs(campaign)) == [(1, "ok")] * 2 + [(2, "ok")] * 2
    (number,) = set(job_ids(campaign).values())
    assert [path.read_text() for path in sorted(campaign.glob(f"jobs/*/end-{number}"))] == ["0\n", "0\n"]
    assert "4 ok of 4 runs" in login.run("status", campaign)


def test_outside_an_allocation_and_in_too_small_a_one_it_says_what_to_type(login: Login) -> None:
    campaign = login.plan("--nodes", "2")
    words = f"salloc --nodes=2 gpubench submit --here {campaign}"
    said = login.run("submit", "--here", campaign, code=2)
    assert "this shell is in none" in said
    assert words in said
    done = inside(login, 1, "submit", "--here", campaign)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "needs more nodes than allocation" in done.stderr
    assert words in done.stderr
    assert not runs(campaign)


def test_ctrl_c_ends_the_job_and_not_the_allocation(
    slurm: SlurmCluster, login: Login, allocation: dict[str, str]
) -> None:
    campaign = login.plan("--reps", "2000")
    with login.start("submit", "--here", campaign, env=allocation) as front:
        try:
            until(lambda: list(campaign.glob("runs/*/samples.jsonl")), "the first sample")
            states = login.run("status", campaign, code=4)
            refused = login.run("cancel", campaign, code=7)
        finally:
            front.send_signal(signal.SIGINT)
            said, _ = front.communicate(timeout=240)
    assert re.search(r"^job j001-n1 \(\d+\): RUNNING.* on n\d$", states, re.MULTILINE), states
    assert f"scancel {allocation['SLURM_JOB_ID']}" in refused
    assert front.returncode == 130, said
    until(lambda: not any(slurm.processes_on(name) for name in slurm.hosts), "the end of the job's processes")
    assert slurm.job(allocation["SLURM_JOB_ID"])["JobState"] == "RUNNING"
    ended = login.run("status", campaign, code=4)
    assert "RUNNING" not in ended
    assert [run["status"] for run in runs(campaign)] == ["skipped"]
