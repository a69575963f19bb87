"""Campaigns by the launcher ssh: a real sshd on every host of a real Slurm."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpubench.store.rundirs import read_provenance
from tests.cli.campaigns import records
from tests.slurm.campaigns import Login, job_ids
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until
from tests.slurm.test_campaigns import leave_no_process, left_on, until_running

pytestmark = pytest.mark.system
SSH = ("--set", "launcher=ssh")


@pytest.fixture
def path(slurm: SlurmCluster, shared: Path) -> Mapping[str, str]:
    """A PATH whose ssh reads the cluster's keys: it asks the password file for the home directory, not ``$HOME``."""
    (shared / "bin").mkdir()
    (shared / "bin" / "ssh").write_text(f'#!/bin/bash\nexec {shutil.which("ssh")} -F {slurm.ssh_config} "$@"\n')
    (shared / "bin" / "ssh").chmod(0o755)
    return {"PATH": f"{shared / 'bin'}:{slurm.env()['PATH']}"}


def started(slurm: SlurmCluster, login: Login, path: Mapping[str, str]) -> tuple[Path, str]:
    """A campaign on two nodes whose first run is taking samples, and its job's number."""
    campaign = login.plan(*SSH, "--nodes", "2", reps=5000)
    login.run("submit", campaign, env=path)
    until_running(login, campaign, path)
    until(lambda: len(left_on(slurm)) == 2, "its processes")
    return campaign, job_ids(campaign)["j001-n2"]


def test_a_campaign_on_two_nodes_runs_in_the_environment_of_its_job(
    slurm: SlurmCluster, login: Login, path: Mapping[str, str]
) -> None:
    odd = 'it\'s "odd" $(date) `x`\nand long ü'
    value = json.dumps(odd, ensure_ascii=False)
    outputs = login.directory / 'o\'dd "name" $(date), `x` a=1: ü'
    words = ("plan", "--site", "local-slurm", *login.shape(), *SSH, "--nodes", "2", "--protocol", "ucx")
    login.run(*words, "--images", "--out", outputs / "c", "--set", f"env.GB_ODD={value}")
    (campaign,) = outputs.iterdir()
    login.run("submit", campaign, env={**path, "TZ": odd})
    assert login.run("status", "--watch", campaign).endswith("2 ok of 2 runs\n")
    for run, record in records(campaign).items():
        assert (record["status"], record["transport"], record["hosts"]) == ("ok", ["tcp"], ["n1", "n2"])
        nodes = read_provenance(campaign / "runs" / run)["nodes"]
        assert {(node["environment"]["GB_ODD"], node["environment"]["TZ"]) for node in nodes} == {(odd, odd)}
    leave_no_process(slurm)


def test_cancelling_leaves_nothing_on_any_host(slurm: SlurmCluster, login: Login, path: Mapping[str, str]) -> None:
    campaign, number = started(slurm, login, path)
    assert login.run("cancel", campaign) == "job j001-n2: cancelled\n"
    until(lambda: left_on(slurm) == {}, "the end of what ssh started")
    said = login.run("status", campaign, code=4)
    assert f"job j001-n2 ({number}): CANCELLED" in said
    assert re.search(r"^block 1 \w \(\w+\): skipped: (interrupted by SIGTERM|node rank 1: )", said, re.MULTILINE), said


def test_a_job_that_is_warned_of_its_end_leaves_a_record_and_no_process(
    slurm: SlurmCluster, login: Login, path: Mapping[str, str]
) -> None:
    campaign, number = started(slurm, login, path)
    slurm.say("scancel", "--batch", "--signal=TERM", number)
    slurm.wait_job(number)
    said = login.run("status", campaign, code=4)
    assert re.search(r"^block 1 \w \(\w+\): skipped: interrupted by SIGTERM", said, re.MULTILINE), said
    assert slurm.job(number)["ExitCode"] == "130:0"
    leave_no_process(slurm)


def test_a_job_script_that_is_killed_leaves_nothing_on_any_host(
    slurm: SlurmCluster, login: Login, path: Mapping[str, str]
) -> None:
    _, number = started(slurm, login, path)
    slurm.say("scancel", "--batch", "--signal=KILL", number)
    until(lambda: left_on(slurm) == {}, "the end of what the script started")


def test_a_killed_remote_supervisor_loses_its_run_and_the_code_is_kept(
    slurm: SlurmCluster, login: Login, path: Mapping[str, str]
) -> None:
    campaign, number = started(slurm, login, path)
    (supervisor,) = (
        pid for pid, line in slurm.processes_on("n2").items() if "node.pyz run" in line and "--role" not in line
    )
    os.kill(supervisor, signal.SIGKILL)
    slurm.wait_job(number)
    said = login.run("status", campaign, code=4)
    first, second = (line for line in said.splitlines() if line.startswith("block 1"))
    assert "lost: lost node rank 1" in first, said
    assert "skipped: the run before it ended with exit code 137" in second, said
    log = (campaign / "jobs" / "j001-n2" / f"slurm-{number}.log").read_text()
    assert "rank 1 on n2 ended with 137" in log
    leave_no_process(slurm)


def test_a_check_tells_which_node_ssh_does_not_reach(login: Login, path: Mapping[str, str]) -> None:
    check = ("sites", "check", "local-slurm", "--live", "--nodes", "2", *SSH)
    assert "ok: ssh: 2 of 2 nodes left a file: n1, n2" in login.run(*check, env=path)
    ssh = login.directory / "bin" / "ssh"
    ssh.write_text(ssh.read_text().replace('"$@"', '-o Port=2 "$@"'))
    said = login.run(*check, env=path, code=6)
    assert "wrong: ssh: 1 of 2 nodes left a file: n1" in said
    (log,) = login.directory.glob("outputs/checks/*/jobs/check/slurm-*.log")
    assert "ssh: connect to host" in log.read_text()
    assert "rank 1 on n2 ended with 255" in log.read_text()
