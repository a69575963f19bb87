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
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import INTERFACE, NAMES, until

pytestmark = pytest.mark.testbed


def submit(slurm: SlurmCluster, directory: Path, script: str, *words: str) -> str:
    file = directory / "job.sh"
    file.write_text(f"#!/bin/bash\n{script}\n")
    done = slurm.run(["sbatch", "--parsable", "-o", "%x.out", "-J", "job", *words, file], cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


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
