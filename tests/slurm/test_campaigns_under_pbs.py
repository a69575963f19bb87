"""Campaigns under a stand-in for PBS whose nodes are the hosts of the real Slurm: ssh and host names are real."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gpubench.model.images_lock import LockRow
from gpubench.store.rundirs import read_provenance
from tests.cli.campaigns import cluster_processes, nothing_left, records
from tests.conftest import GPUBENCH, need, plain_environment
from tests.pbs.cluster import PbsCluster
from tests.slurm.campaigns import UCX, Login, job_ids
from tests.slurm.cluster import STAND_INS, SlurmCluster
from tests.slurm.hosts import until
from tests.slurm.test_campaigns import leave_no_process, left_on, until_running

pytestmark = pytest.mark.system
SITE = ("--set", "scheduler=pbs", "--set", "launcher=ssh")


@pytest.fixture
def pbs(slurm: SlurmCluster, shared: Path) -> Iterator[PbsCluster]:
    """A server whose nodes are the hosts."""
    nodes = {name: host.init for name, host in slurm.hosts.items()}
    made = PbsCluster(shared, nodes=nodes, commands=slurm.root / STAND_INS.name / "pbs")
    yield made
    made.close()


@pytest.fixture
def variables(slurm: SlurmCluster, shared: Path, pbs: PbsCluster) -> Mapping[str, str]:
    """PBS, and an ssh with the cluster's keys: it asks the password file for the home directory, not ``$HOME``."""
    (shared / "bin").mkdir()
    (shared / "bin" / "ssh").write_text(f'#!/bin/bash\nexec {shutil.which("ssh")} -F {slurm.ssh_config} "$@"\n')
    (shared / "bin" / "ssh").chmod(0o755)
    return {**pbs.env(), "PATH": f"{shared / 'bin'}:{pbs.env()['PATH']}"}


def started(slurm: SlurmCluster, login: Login, variables: Mapping[str, str], *words: str) -> Path:
    """A campaign on two nodes whose first run is taking samples."""
    campaign = login.plan(*SITE, "--nodes", "2", *words, reps=5000)
    login.run("submit", campaign, env=variables)
    until_running(login, campaign, variables)
    until(lambda: len(left_on(slurm)) == 2, "its processes")
    return campaign


def test_campaigns_on_one_and_two_nodes_run_in_the_environment_of_their_submit(
    slurm: SlurmCluster, login: Login, pbs: PbsCluster, variables: Mapping[str, str]
) -> None:
    odd = 'it\'s "odd" $(date) `x`\nand long ü'
    outputs = login.directory / 'o\'dd "name" $(date), `x` a=1: ü'
    words = ("plan", "--site", "local-slurm", *login.shape(), *SITE, "--nodes", "1 2", "--protocol", "ucx")
    value = json.dumps(odd, ensure_ascii=False)
    login.run(*words, "--images", "--out", outputs / "c", "--set", f"env.GB_ODD={value}")
    (campaign,) = outputs.iterdir()
    said = login.run("submit", campaign, env={**variables, "TZ": odd})
    assert said.startswith("job j001-n1: 1.pbs-server\njob j002-n2: 2.pbs-server\n")
    assert login.run("status", "--watch", campaign, env=variables).endswith("4 ok of 4 runs\n")
    for run, record in records(campaign).items():
        nodes = read_provenance(campaign / "runs" / run)["nodes"]
        assert (record["status"], record["transport"], record["hosts"]) == ("ok", ["tcp"], ["n1", "n2"][: len(nodes)])
        assert {(node["environment"]["GB_ODD"], node["environment"]["TZ"]) for node in nodes} == {(odd, odd)}
    assert {
        job: (campaign / "jobs" / job / f"end-{number[0]}").read_text() for job, number in job_ids(campaign).items()
    } == {
        "j001-n1": "0\n",
        "j002-n2": "0\n",
    }
    assert str(campaign / "jobs" / "j002-n2" / "pbs-2.log") in login.run("logs", campaign, env=variables)
    leave_no_process(slurm)


def test_cancelling_leaves_nothing_on_any_host(
    slurm: SlurmCluster, login: Login, pbs: PbsCluster, variables: Mapping[str, str]
) -> None:
    campaign = started(slurm, login, variables)
    assert login.run("cancel", campaign, env=variables) == "job j001-n2: cancelled\n"
    until(lambda: left_on(slurm) == {}, "the end of what ssh started")
    said = login.run("status", campaign, code=4, env=variables)
    assert "job j001-n2 (1.pbs-server): CANCELLED, exit code 130: it was ended by qdel" in said
    assert re.search(r"^block 1 \w \(\w+\): skipped: (interrupted by SIGTERM|node rank 1: )", said, re.MULTILINE), said


def test_a_job_warns_itself_of_its_end_and_leaves_a_record_and_no_process(
    slurm: SlurmCluster, login: Login, pbs: PbsCluster, variables: Mapping[str, str]
) -> None:
    # PBS starts to count when it starts the job: the script asks it when that was.
    campaign = started(slurm, login, variables, "--set", "limits.job=4m", "--set", "batch.warning=195s")
    until(lambda: pbs.job("1")["job_state"] == "F", "the end of the job")
    assert (pbs.job("1")["Exit_status"], pbs.job("1")["substate"]) == (130, 93)
    said = login.run("status", campaign, code=4, env=variables)
    assert "job j001-n2 (1.pbs-server): FAILED, exit code 130: it was asked to end: by qdel, or because" in said
    assert re.search(r"^block 1 \w \(\w+\): skipped: interrupted by SIGTERM", said, re.MULTILINE), said
    leave_no_process(slurm)


def test_a_script_that_is_killed_leaves_nothing_on_any_host(
    slurm: SlurmCluster, login: Login, pbs: PbsCluster, variables: Mapping[str, str]
) -> None:
    campaign = started(slurm, login, variables)
    # The oldest: the process that waits for the warning has the same words.
    script = min(
        pid for pid, line in slurm.processes_on("n1").items() if line.startswith("/bin/bash") and "/script" in line
    )
    os.kill(script, signal.SIGKILL)
    until(lambda: pbs.job("1")["job_state"] == "F", "the end of the job")
    leave_no_process(slurm)
    assert "job j001-n2 (1.pbs-server): FAILED, exit code 137" in login.run("status", campaign, code=4, env=variables)


def test_a_campaign_in_apptainer_on_two_hosts(
    slurm: SlurmCluster, login: Login, imported: LockRow, variables: Mapping[str, str]
) -> None:
    need(shutil.which("apptainer") is not None, "apptainer (bash requirements/apptainer.sh)")
    login.lock(imported)
    words = (*SITE, "--set", "runtime=apptainer", "--nodes", "2", "--protocol", "ucx")
    campaign = login.plan(*words)
    login.run("submit", campaign, env=variables)
    assert login.run("status", "--watch", campaign, env=variables).endswith("2 ok of 2 runs\n")
    assert [(one["status"], one["hosts"]) for one in records(campaign).values()] == [("ok", ["n1", "n2"])] * 2
    leave_no_process(slurm)


def test_a_profile_is_checked_on_the_nodes_and_they_are_cleaned(
    slurm: SlurmCluster, login: Login, variables: Mapping[str, str]
) -> None:
    shared = f"paths.shared=['{login.directory}']"
    words = ("sites", "check", "local-slurm", "--live", "--nodes", "2", "--ucx", UCX, *SITE, "--set", shared)
    said = login.run(*words, env=variables).splitlines()
    findings = [line for line in said if not line.startswith(("job ", "building", "image"))]
    assert all(line.startswith("ok: ") for line in findings), said
    assert "ok: ssh: 2 of 2 nodes left a file: n1, n2" in said
    assert "ok: venv: the image started on 2 of 2 nodes" in said
    dead = slurm.root / "hosts" / "n2" / "tmp" / "gpubench-of-a-dead-run"
    dead.mkdir()
    (dead / ".held").write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
    said = login.run("sites", "clean", "local-slurm", "--nodes", "2", "--remove", *SITE, env=variables)
    assert "gpubench-of-a-dead-run" in said
    assert not dead.exists()


def test_a_standing_cluster_is_started_grown_and_stopped(
    slurm: SlurmCluster, login: Login, pbs: PbsCluster, variables: Mapping[str, str]
) -> None:
    start = ("--ucx", UCX, "--protocol", "tcp", "--workers", "1", "--time", "10m", "--name", "mine", "--nodes", "1")
    login.run("cluster", "start", "--site", "local-slurm", *SITE, *start, env=variables)
    assert login.run("cluster", "grow", "+2", env=variables).endswith("3 workers are connected\n")
    assert "ready, 3 of 3 workers on 3 nodes" in login.run("cluster", "status", env=variables)
    said = login.run("cluster", "stop", env=variables)
    assert sorted(said.splitlines()) == ["cluster mine is stopped", "job j001-n1: ended", "job j002-n2: ended"]
    assert [pbs.job(number)["Exit_status"] for number in "12"] == [0, 0]
    leave_no_process(slurm)


def test_a_campaign_runs_on_nodes_that_a_job_of_the_user_holds(
    slurm: SlurmCluster, login: Login, variables: Mapping[str, str]
) -> None:
    campaign = login.plan(*SITE, "--nodes", "1")
    # As the shell of `qsub -I` has it, somewhere else than in the job's directory.
    nodes = login.directory / "nodes"
    nodes.write_text("n1\nn1\nn2\nn2\n")
    held = {
        "PBS_JOBID": "77.pbs-server",
        "PBS_NODEFILE": str(nodes),
        "PBS_O_WORKDIR": "/",
        "PBS_ENVIRONMENT": "PBS_INTERACTIVE",
    }
    words = [str(GPUBENCH), "submit", "--here", str(campaign)]
    # On the host by its name and network. Its files would hide a gpubench below /tmp.
    enter = ["nsenter", f"--target={slurm.hosts['n1'].init}", "--uts", "--net"]
    env = plain_environment({**variables, **held, **login.variables})
    done = subprocess.run(
        [*enter, f"--wd={login.directory}", *words], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one["status"] for one in records(campaign).values()] == ["ok", "ok"]
    assert (campaign / "jobs" / "j001-n1" / "end-77").read_text() == "0\n"
    assert (campaign / "jobs" / "j001-n1" / "pbs-77.log").exists()
    nothing_left(lambda: cluster_processes(campaign))
