"""The fixture itself: a real Slurm whose every state can be brought about, and that leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, plain_environment
from tests.slurm.cluster import OTHER_USER, SlurmCluster
from tests.slurm.configuration import ACCOUNT
from tests.slurm.hosts import INTERFACE, NAMES, until

pytestmark = pytest.mark.testbed
REFUSED = {
    "partition": (["-p", "nope"], 1, "invalid partition specified: nope"),
    "nodes": (["-N", "9"], 1, "Node count specification invalid"),
    "time": (["-t", "9:00:00"], 1, "Requested time limit is invalid (missing or exceeds some limit)"),
    "gpus": (["--gpus-per-node=8"], 1, "Invalid generic resource (gres) specification"),
    "option": (["--nv-meta=x"], 255, "unrecognized option '--nv-meta=x'"),
}


def submit(slurm: SlurmCluster, directory: Path, script: str, *words: str) -> str:
    file = directory / "job.sh"
    file.write_text(f"#!/bin/bash\n{script}\n")
    done = slurm.run(["sbatch", "--parsable", "-o", "%x.out", "-J", "job", *words, file], cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def sleeping(slurm: SlurmCluster, name: str) -> int:
    """Programs ``sleep 600`` on the host; slurmstepd calls them by their path."""
    return sum(Path(line.split()[0]).name == "sleep" for line in slurm.processes_on(name).values())


def test_a_batch_job_runs_on_four_hosts_with_names_networks_and_directories_of_their_own(
    slurm: SlurmCluster, shared: Path
) -> None:
    program = f"hostname; echo /sys/class/net/*; ls /tmp; cat /proc/1/comm; ip -o -4 address show dev {INTERFACE}"
    script = f"srun -N4 bash -c 'touch /tmp/$(hostname); {{ {program}; }} > $(hostname).out'"
    ended = slurm.wait_job(submit(slurm, shared, script, "-N4", "--ntasks-per-node=1"))
    assert (ended["JobState"], ended["ExitCode"], ended["NodeList"]) == ("COMPLETED", "0:0", "n[1-4]")
    for name in NAMES:
        said = (shared / f"{name}.out").read_text().split()
        assert said[:3] == [name, f"/sys/class/net/{INTERFACE}", "/sys/class/net/lo"]
        others = {
            other for other in NAMES if other != name
        }  # an earlier test's crash may have left a directory of its own
        assert name in said[3:]  # an earlier test's crash may have left a directory beside it
        assert not others & set(said)
        assert "bash" in said  # the host's own first process
        assert f"{slurm.hosts[name].address}/24" in said


def test_hosts_reach_each_other_by_name_over_tcp(slurm: SlurmCluster, shared: Path) -> None:
    (shared / "talk.py").write_text(
        "import os, socket, time\n"
        "if os.environ['SLURM_PROCID'] == '0':\n"
        "    with socket.create_server(('', 4711)) as server:\n"
        "        print('heard', server.accept()[0].recv(99).decode())\n"
        "else:\n"
        "    while True:\n"
        "        try:\n"
        "            socket.create_connection(('n3', 4711)).sendall(os.uname().nodename.encode())\n"
        "            break\n"
        "        except ConnectionRefusedError:\n"
        "            time.sleep(0.1)\n"
    )
    said = slurm.run(["srun", "-N2", "-w", "n3,n4", "/usr/bin/env", "python3", shared / "talk.py"])
    assert (said.stdout, said.returncode) == ("heard n4\n", 0), said.stderr


def test_ssh_leads_to_every_host_as_a_login_without_questions(slurm: SlurmCluster) -> None:
    for name in NAMES:
        assert slurm.say("ssh", "-F", slurm.ssh_config, name, "hostname") == name


def test_a_job_of_another_user_runs_as_that_user(slurm: SlurmCluster, shared: Path) -> None:
    done = slurm.run(["sbatch", "--wait", "-o", "id.out", "--wrap", "id -un; srun id -un"], cwd=shared, user=OTHER_USER)
    assert done.returncode == 0, done.stderr
    assert (shared / "id.out").read_text() == f"{OTHER_USER}\n{OTHER_USER}\n"
    assert (shared / "id.out").owner() == OTHER_USER


def test_a_job_that_exits_with_a_code_has_failed(slurm: SlurmCluster, shared: Path) -> None:
    ended = slurm.wait_job(submit(slurm, shared, "exit 7"))
    assert (ended["JobState"], ended["Reason"], ended["ExitCode"]) == ("FAILED", "NonZeroExitCode", "7:0")
    assert "JobState=FAILED" in slurm.job_records.read_text()


def test_cancelling_ends_the_job_and_its_processes(slurm: SlurmCluster, shared: Path) -> None:
    number = submit(slurm, shared, "srun sleep 600", "-N2", "-w", "n1,n2")
    until(lambda: sleeping(slurm, "n2"), "the task on n2")
    slurm.say("scancel", number)
    assert slurm.wait_job(number)["JobState"] == "CANCELLED"
    until(lambda: not slurm.processes_on("n1") and not slurm.processes_on("n2"), "the end of all processes")


def test_the_time_limit_ends_a_job_after_its_script_was_warned(slurm: SlurmCluster, shared: Path) -> None:
    script = "trap 'echo warned' USR1; srun sleep 600 & while kill -0 $!; do wait $!; done"
    number = submit(slurm, shared, script, "-t1", "--signal=B:USR1@30")
    ended = slurm.wait_job(number, timeout=150)
    assert (ended["JobState"], ended["Reason"]) == ("TIMEOUT", "TimeLimit")
    said = (shared / "job.out").read_text()
    assert said.index("warned") < said.index("DUE TO TIME LIMIT")


def test_jobs_on_a_crashed_host_fail_or_are_queued_again_and_the_host_comes_back(
    slurm: SlurmCluster, shared: Path
) -> None:
    def starts() -> list[str]:
        return (shared / "starts").read_text().split()

    fails = submit(slurm, shared, "srun sleep 600", "-N2", "-w", "n3,n4", "-J", "fails")
    again = submit(
        slurm, shared, "echo ${SLURM_RESTART_COUNT:-0} >> starts; srun sleep 600", "-wn4", "--requeue", "-J", "again"
    )
    until(lambda: sleeping(slurm, "n4") == 2, "the tasks on n4")
    slurm.crash("n4")
    try:
        assert slurm.processes_on("n4") == {}
        ended = slurm.wait_job(fails, timeout=90)
        assert (ended["JobState"], ended["Reason"]) == ("NODE_FAIL", "NodeDown")
        assert "srun: error: Node failure on n4" in (shared / "fails.out").read_text()
        assert slurm.nodes()["n4"] == "down*"
        queued = slurm.wait_job(again, {"PENDING"})
        assert (queued["Reason"], queued["Restarts"]) == ("BeginTime", "1")
        # On another host: what Slurm still has to kill on the crashed one would hit the second start there.
        slurm.say("scontrol", "update", f"JobId={again}", "ReqNodeList=n1", "StartTime=now")
        until(lambda: starts() == ["0", "1"], "the second start")
    finally:
        slurm.revive("n4")
    slurm.wait_idle(["n4"])


def test_a_host_without_network_keeps_its_processes(slurm: SlurmCluster, shared: Path) -> None:
    number = submit(slurm, shared, "sleep 600", "-wn2")
    until(lambda: sleeping(slurm, "n2"), "the job on n2")
    slurm.down_network("n2")
    try:
        assert slurm.run(["ssh", "-F", slurm.ssh_config, "-o", "ConnectTimeout=1", "n2", "true"]).returncode == 255
        assert sleeping(slurm, "n2")
    finally:
        slurm.up_network("n2")
    slurm.say("scancel", number)


@pytest.mark.parametrize(("words", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_what_the_cluster_has_not_is_refused_at_once(
    slurm: SlurmCluster, shared: Path, words: list[str], code: int, message: str
) -> None:
    done = slurm.run(["sbatch", "--parsable", *words, "--wrap", "true"], cwd=shared)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_clients_hang_while_the_controller_is_down_and_jobs_outlive_that(slurm: SlurmCluster, shared: Path) -> None:
    number = submit(slurm, shared, "srun sleep 3; exit 4")
    slurm.wait_job(number, {"RUNNING"})
    slurm.controller_down()
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            slurm.run(["squeue", "-h", "-j", number], timeout=2)
    finally:
        slurm.controller_up()
    assert slurm.wait_job(number)["ExitCode"] == "4:0"


def test_accounts_and_used_memory_count_where_there_is_accounting() -> None:
    with SlurmCluster(accounting=True, memory_limits=True) as cluster:
        refused = cluster.run(["sbatch", "-A", "nope", "--wrap", "true"])
        assert refused.returncode == 1
        assert "Invalid account or account/partition combination specified" in refused.stderr
        number = submit(cluster, cluster.shared, "srun python3 -c 'bytearray(2**30)'", "--mem=200", "-A", ACCOUNT)
        # The step was killed for its memory; the job's script only saw a command fail.
        assert cluster.wait_job(number)["JobState"] == "FAILED"
        assert "Detected 1 oom-kill event(s)" in (cluster.shared / "job.out").read_text()

        def accounted() -> list[str]:
            return cluster.say("sacct", "-nP", "-j", number, "-o", "JobID,State,Account").splitlines()

        until(lambda: f"{number}.0|OUT_OF_MEMORY|{ACCOUNT}" in accounted(), "the step in the database")
        assert f"{number}|FAILED|{ACCOUNT}" in accounted()
    assert not list(Path("/sys/fs/cgroup").glob("*/slurm_n[1-4]"))


HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tests.slurm.cluster import SlurmCluster
with SlurmCluster(ssh=True) as cluster:
    cluster.say("sbatch", "-N4", "--wrap", "srun sleep 600")
    print(cluster.root, cluster._network.bridge, flush=True)
    time.sleep(600)
"""
BROKEN = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.slurm import cluster
start = cluster.Daemon.start
def fail(self, ready):
    start(self, ready)
    if "slurmctld" in self._words:
        print(cluster_.root, cluster_._network.bridge, flush=True)
        raise RuntimeError("half way")
cluster.Daemon.start = fail
cluster_ = cluster.SlurmCluster()
cluster_.__enter__()
"""


def start(program: str) -> tuple[subprocess.Popen[str], str, str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(ROOT)],
        env=plain_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    root, bridge = process.stdout.readline().split()
    return process, root, bridge


def processes_of(root: str) -> list[str]:
    """Everything that names the cluster's directory on its command line or in its environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            text = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if root.encode() in text and path.name != str(os.getpid()):
            found.append(text.replace(b"\0", b" ").decode(errors="replace")[:80])
    return found


def links() -> set[str]:
    shown = subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True).stdout
    return {link["ifname"] for link in json.loads(shown)}


@pytest.mark.parametrize(
    ("program", "number"), [(HOLD, signal.SIGINT), (BROKEN, 0)], ids=["interrupted", "half set up"]
)
def test_nothing_is_left_of_a_cluster(program: str, number: int) -> None:
    process, root, bridge = start(program)
    with process:
        process.send_signal(number)
        process.wait(60)
    assert not Path(root).exists()
    assert processes_of(root) == []
    assert not [name for name in links() if name.startswith(bridge)]
    assert root not in Path("/proc/mounts").read_text()


def test_a_killed_test_run_leaves_no_process_and_the_next_cluster_removes_the_rest() -> None:
    process, root, bridge = start(HOLD)
    with process:
        process.kill()
    until(lambda: not processes_of(root), "the end of all processes")
    with SlurmCluster() as cluster:
        assert not Path(root).exists()
        assert cluster.nodes() == dict.fromkeys(NAMES, "idle")
    assert bridge not in links()
