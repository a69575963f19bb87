"""Workload `tasks` with parsl's workers in Slurm jobs of their own, on a real Slurm: they are there, and then gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.campaigns import records
from tests.slurm.campaigns import UCX, Login, job_ids
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until
from tests.slurm.test_campaigns import leave_no_process

pytestmark = pytest.mark.system

SITE = """
name = "shared-scratch"
inherits = "local-slurm"
env_allow = ["LANG", "PATH", "SLURM_CONF"]
[paths]
scratch = "{scratch}"
"""
SUITE = """
name = "tasks-through-slurm"
[[workload]]
name = "tasks"
backend = "parsl"
reps = 1
warmup = 0
params = {{ mode = "estimate", target = "{target}", parsl_provider = "slurm", parsl_partition = "batch" }}
"""


def planned(login: Login, target: str) -> Path:
    """A campaign of one block of A against A on one node."""
    scratch = login.directory / "scratch"
    scratch.mkdir()
    (login.directory / "site.toml").write_text(SITE.format(scratch=scratch))
    (login.directory / "parsl.toml").write_text(SUITE.format(target=target))
    variants = (
        "--variants",
        f"a={UCX} b={UCX}",
        "--protocol",
        "tcp",
        "--nodes",
        "1",
        "--blocks",
        "1",
        "--workers",
        "2",
    )
    login.run("plan", "--images", "--out", "outputs/parsl", "--site", "site.toml", "--suite", "parsl.toml", *variants)
    (campaign,) = (login.directory / "outputs").iterdir()
    return campaign


def blocks(slurm: SlurmCluster, states: str = "all") -> list[list[str]]:
    """Number, state and node of every Slurm job that parsl has submitted."""
    rows = [
        line.split("|") for line in slurm.say("squeue", "-h", f"--states={states}", "-o", "%j|%i|%T|%N").splitlines()
    ]
    return [words for name, *words in rows if name.startswith("parsl.")]


def test_parsl_s_blocks_are_slurm_jobs_beside_the_run_s_own_and_gone_after_it(
    slurm: SlurmCluster, login: Login
) -> None:
    before = blocks(slurm)
    campaign = planned(login, "1s")
    login.run("submit", campaign)
    seen: list[list[str]] = []
    until(lambda: seen.extend(blocks(slurm, "RUNNING")) or seen, "a block")
    assert slurm.job(job_ids(campaign)["j001-n1"])["NodeList"] != seen[0][2]
    login.run("status", "--watch", campaign)
    assert [(record["status"], record["reason"]) for record in records(campaign).values()] == [("ok", "")] * 2
    for name in records(campaign):
        (workload,) = json.loads((campaign / "runs" / name / "run.json").read_text())["workloads"]
        assert workload["details"]["providers"] == ["SlurmProvider"]
    assert len({number for number, *_ in blocks(slurm)} - {number for number, *_ in before}) == 2
    until(lambda: not blocks(slurm, "PENDING,RUNNING,COMPLETING"), "the end of the blocks")
    leave_no_process(slurm)
    assert list((login.directory / "scratch").iterdir()) == []


@pytest.mark.long
def test_parsl_s_blocks_are_gone_when_the_run_is_cancelled(slurm: SlurmCluster, login: Login) -> None:
    campaign = planned(login, "100s")
    login.run("submit", campaign)
    until(lambda: blocks(slurm, "RUNNING"), "a block")
    login.run("cancel", campaign)
    until(lambda: not blocks(slurm, "PENDING,RUNNING,COMPLETING"), "the end of the blocks")
    leave_no_process(slurm)
