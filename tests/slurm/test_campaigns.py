"""Whole campaigns on a real Slurm through the public command."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.campaigns import files_with, nothing_left, records
from tests.slurm.campaigns import Login, job_ids
from tests.slurm.cluster import OTHER_USER, SlurmCluster
from tests.slurm.hosts import NAMES, until

pytestmark = pytest.mark.system
PLANTED = "planted-s3cr3t"


def running(campaign: Path) -> bool:
    """Whether a run has taken a sample and isn't finished."""
    return any(not (path.parent / "run.json").exists() for path in campaign.glob("runs/*/samples.jsonl"))


def until_running(login: Login, campaign: Path, env: Mapping[str, str] | None = None) -> None:
    """Wait until a run is measured.

    Raises:
        TimeoutError: none is; it says how the jobs stand, and what they and the runs said.
    """
    try:
        until(lambda: running(campaign), "a run")
    except TimeoutError as error:
        files = [path for kind in ("jobs/*/*", "runs/*/run.json") for path in sorted(campaign.glob(kind))]
        said = [
            f"{path}: {path.read_text(errors='replace')[-2000:]}"
            for path in files
            if path.is_file() and path.suffix != ".sh"
        ]
        raise TimeoutError("\n".join([str(error), login.run("status", campaign, code=4, env=env), *said])) from None


def left_on(slurm: SlurmCluster) -> dict[str, list[str]]:
    """What jobs run on the hosts."""
    found = {name: sorted(slurm.processes_on(name).values()) for name in NAMES}
    return {name: lines for name, lines in found.items() if lines}


def leave_no_process(slurm: SlurmCluster) -> None:
    """Jobs that have ended leave nothing on the hosts; a moment is theirs, since the asking host may be faster.

    Raises:
        AssertionError: after a while something still runs.
    """
    nothing_left(lambda: left_on(slurm))


def test_a_campaign_over_1_and_4_nodes_by_a_user_other_than_root(slurm: SlurmCluster, nobody: Login) -> None:
    words = ("bench", "--site", "local-slurm", *nobody.shape(), "--protocol", "ucx", "--nodes", "1 4")
    said = nobody.run(*words, env={"A_TOKEN": PLANTED, "UCX_PLANTED": PLANTED})
    assert "[4/4] block 2" in said
    (campaign,) = (nobody.directory / "outputs").iterdir()
    assert campaign.owner() == OTHER_USER
    found = sorted(records(campaign).values(), key=lambda record: str(record["started_at"]))
    assert [(run["nodes"], run["status"], run["transport"]) for run in found] == [
        (nodes, "ok", ["tcp"]) for nodes in (1, 1, 4, 4)
    ]
    assert all(len(set(run["hosts"])) == run["nodes"] and set(run["hosts"]) <= set(NAMES) for run in found)
    # All hosts are one machine: a job that began before another had ended would have measured it too.
    assert all(before["ended_at"] <= after["started_at"] for before, after in itertools.pairwise(found))
    assert nobody.run("status", campaign).endswith("4 ok of 4 runs\n")
    assert nobody.run("compare", campaign, code=21).count("inconclusive") == 2
    for job, number in job_ids(campaign).items():
        assert (campaign / "jobs" / job / f"end-{number}").read_text() == "0\n"
        assert str(campaign / "jobs" / job / f"slurm-{number}.log") in nobody.run("logs", campaign)
    assert PLANTED not in said
    assert files_with(PLANTED, nobody.directory) == []
    leave_no_process(slurm)


def test_a_killed_worker_fails_its_run_with_the_cause_and_the_next_runs_go_on(
    slurm: SlurmCluster, login: Login
) -> None:
    campaign = login.plan(reps=60)
    login.run("submit", campaign)

    def workers() -> list[int]:
        lines = {pid: line for name in NAMES for pid, line in slurm.processes_on(name).items()}
        return [pid for pid, line in lines.items() if "--role worker" in line or line.startswith("dask worker")]

    until(workers, "a worker")
    (worker,) = workers()  # known before the first sample: what is looked for afterwards may be over by then
    until_running(login, campaign)
    os.kill(worker, signal.SIGKILL)
    login.run("status", "--watch", campaign)
    failed, well = sorted(records(campaign).values(), key=lambda record: str(record["started_at"]))
    assert (failed["status"], failed["reason"]) == ("failed", "worker-0-0 ended: killed by SIGKILL")
    assert failed["cause"]["process"] == "worker-0-0"
    assert well["status"] == "ok"
    assert slurm.job(job_ids(campaign)["j001-n1"])["JobState"] == "COMPLETED"


def test_bench_waits_for_the_jobs_of_a_campaign_that_are_in_the_queue_and_judges(
    slurm: SlurmCluster, login: Login
) -> None:
    campaign = login.plan("--nodes", "2", reps=20)
    login.run("submit", campaign)
    said = login.run("bench", "--campaign", campaign)
    assert "nothing is missing" in said
    assert f"report: {campaign}/report.html" in said
    assert "runs: 2 ok" in said
    assert len(records(campaign)) == 2
    leave_no_process(slurm)


def test_cancelling_accounts_for_every_run_and_leaves_no_process(slurm: SlurmCluster, login: Login) -> None:
    campaign = login.plan("--nodes", "2", reps=5000)
    login.run("submit", campaign)
    until_running(login, campaign)
    assert "is still running" in login.run("submit", "--campaign", campaign, code=2)
    assert f"jobs still wait or run: gpubench status --watch {campaign}" in login.run("status", campaign, code=4)
    assert login.run("cancel", campaign) == "job j001-n2: cancelled\n"
    said = login.run("status", campaign, code=4)
    assert f"job j001-n2 ({job_ids(campaign)['j001-n2']}): CANCELLED" in said
    first, second = (line for line in said.splitlines() if line.startswith("block 1"))
    assert "interrupted by SIGTERM" in first
    assert "lost: job j001-n2 ended (CANCELLED" in second
    assert "before this run started" in second
    leave_no_process(slurm)
    assert login.run("cancel", campaign) == "no job waits or runs\n"
    assert list(campaign.glob("runs/.rendezvous*")) == []
