"""Commands under a stand-in for PBS whose nodes are the hosts of the real Slurm: ssh and host names are real."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.campaigns import cluster_processes, nothing_left, records
from tests.conftest import GPUBENCH, plain_environment
from tests.pbs.cluster import PbsCluster
from tests.slurm.campaigns import UCX, Login
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_campaigns import leave_no_process

pytestmark = pytest.mark.system
SITE = ("--set", "scheduler=pbs", "--set", "launcher=ssh")


def test_a_profile_is_checked_on_the_nodes_and_they_are_cleaned(
    slurm: SlurmCluster, login: Login, of_pbs: dict[str, str]
) -> None:
    shared = f"paths.shared=['{login.directory}']"
    words = ("sites", "check", "local-slurm", "--live", "--nodes", "2", "--ucx", UCX, *SITE, "--set", shared)
    said = login.run(*words, env=of_pbs).splitlines()
    findings = [line for line in said if not line.startswith(("job ", "building", "image"))]
    assert all(line.startswith("ok: ") for line in findings), said
    assert "ok: ssh: 2 of 2 nodes left a file: n1, n2" in said
    assert "ok: venv: the image started on 2 of 2 nodes" in said
    dead = slurm.root / "hosts" / "n2" / "tmp" / "gpubench-of-a-dead-run"
    dead.mkdir()
    (dead / ".held").write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
    # By default it is the job's own TMPDIR, which PBS removes.
    words = ("sites", "clean", "local-slurm", "--nodes", "2", "--remove", *SITE, "--set", "paths.scratch=/tmp")
    said = login.run(*words, env=of_pbs)
    assert "gpubench-of-a-dead-run" in said
    assert not dead.exists()


def test_a_standing_cluster_is_started_grown_and_stopped(
    slurm: SlurmCluster, login: Login, pbs: PbsCluster, of_pbs: dict[str, str]
) -> None:
    start = ("--ucx", UCX, "--protocol", "tcp", "--workers", "1", "--time", "10m", "--name", "mine", "--nodes", "1")
    login.run("cluster", "start", "--site", "local-slurm", *SITE, *start, env=of_pbs)
    assert login.run("cluster", "grow", "+2", env=of_pbs).endswith("3 workers are connected\n")
    assert "ready, 3 of 3 workers on 3 nodes" in login.run("cluster", "status", env=of_pbs)
    said = login.run("cluster", "stop", env=of_pbs)
    assert sorted(said.splitlines()) == ["cluster mine is stopped", "job j001-n1: ended", "job j002-n2: ended"]
    assert [pbs.job(number)["Exit_status"] for number in "12"] == [0, 0]
    leave_no_process(slurm)


def test_a_campaign_runs_on_nodes_that_a_job_of_the_user_holds(
    slurm: SlurmCluster, login: Login, of_pbs: dict[str, str]
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
    env = plain_environment({**of_pbs, **held, **login.variables})
    done = subprocess.run(
        [*enter, f"--wd={login.directory}", *words], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one["status"] for one in records(campaign).values()] == ["ok", "ok"]
    assert (campaign / "jobs" / "j001-n1" / "end-77").read_text() == "0\n"
    assert (campaign / "jobs" / "j001-n1" / "pbs-77.log").exists()
    nothing_left(lambda: cluster_processes(campaign))
