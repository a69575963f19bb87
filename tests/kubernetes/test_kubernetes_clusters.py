"""``gpubench cluster`` on a stand-in cluster whose pods are real processes on real networks, and share a claim."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.render.cluster import variables
from gpubench.store.clusters import Cluster as StoredCluster
from tests.cli.campaigns import nothing_left, until
from tests.kubernetes.cluster import VERSIONS, Cluster
from tests.kubernetes.store import Object

pytestmark = pytest.mark.system

CLAIM = 'claim = "results"\nclaim_folder = "outputs"\nrun_as_user = {user}'
START = ("--ucx", VERSIONS[1], "--name", "mine", "--time", "10m")
MARK = b"GPUBENCH_CLUSTER="
SCRIPT = """
import os
from dask.distributed import Client
client = Client(scheduler_file=FILE)
print(sum(client.gather(client.map(lambda number: number * number, range(100)))))
print(sorted(client.run(lambda: os.uname().nodename).values()))
"""


class Standing:
    """The standing cluster of a user of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.directory = cluster.directory / "outputs" / "clusters" / "mine"
        self.file = self.directory / "scheduler.json"
        claim = cluster.root / "claims" / "results"
        if not claim.is_symlink():
            claim.rmdir()
            claim.symlink_to(cluster.directory)
        (stack,) = {image["/opt/gpubench/stack"] for image in cluster.push_images().values()}
        self.python = Path(stack) / "bin" / "python"

    def __call__(self, *words: str | Path, code: int = 0) -> str:
        return self.cluster.run("cluster", *words, code=code)

    def start(self, *words: str, nodes: int, code: int = 0, more: str = CLAIM) -> str:
        site = self.cluster.write_site(more.format(user=os.getuid()))
        return self("start", "--site", site, *START, "--nodes", str(nodes), *words, code=code)

    def look(self, word: str, code: int = 0) -> str:
        """A command that joins from here: this machine routes the addresses of pods."""
        return self(word, "--scheduler-file", self.file, "--python", self.python, code=code)

    def pod(self, job: str, index: int) -> Object:
        """The one of that number among the job's."""
        names = {one["spec"]["hostname"]: one for one in self.cluster.pods()}
        return next(one for name, one in names.items() if f"-{job}-" in name and name.endswith(f"-{index}"))

    def conditions(self, job: str) -> list[str]:
        """Types of a Job's conditions."""
        found = self.cluster.store.read("Job", job)
        return [one["type"] for one in found["status"].get("conditions", ())] if found else []

    def supervisors(self) -> dict[str, int]:
        """Host names of the pods, and the process of each that is their container's first."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
                env = dict(one.split(b"=", 1) for one in (entry / "environ").read_bytes().split(b"\0") if b"=" in one)
                inner = (entry / "status").read_text().partition("\nNSpid:")[2].split("\n")[0].split()
            except OSError:
                continue
            if b"cluster" in line and env.get(b"OUTDIR") == bytes(self.directory) and inner[-1] == "1":
                found[env[b"HOSTNAME"].decode()] = int(entry.name)
        return found

    def worker(self, rank: int) -> int:
        """The process of a node's only worker."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                marks = [one for one in (entry / "environ").read_bytes().split(b"\0") if one.startswith(MARK)]
                worker = b"dask worker" in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if worker and marks and bytes(self.directory) in marks[0] and marks[0].endswith(f":{rank}".encode()):
                found.append(int(entry.name))
        (process,) = found
        return process

    def inside(self, text: str) -> str:
        """What a user's script says that runs in a pod, as ``kubectl exec`` would start it."""
        (process, *_) = self.supervisors().values()
        record = StoredCluster.open(self.directory).record
        given = [f"{name}={value}" for name, value in variables(record).items()]
        spaces = ["nsenter", f"--target={process}", "--net", "--uts", "--ipc", "--pid", "--mount", "--root", "--wd=/"]
        python = ["/opt/gpubench/stack/bin/python", "-I", "-c", text.replace("FILE", repr(str(self.file)))]
        words = [*spaces, "env", "-i", "PATH=/usr/bin:/bin", *given, *python]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def left(self) -> list[object]:
        """What a stopped cluster must not leave: objects, processes, what lets anybody join."""
        kinds = ("Job", "Pod", "Service", "ConfigMap")
        names = [one["metadata"]["name"] for kind in kinds for one in self.cluster.store.all(kind)]
        objects = [name for name in names if name.startswith("g-mine-")]
        files = [name for name in ("token", "tls", "scheduler.json") if (self.directory / name).exists()]
        return [*objects, *self.cluster.processes(), *files, *self.directory.glob(".rendezvous-*")]


@pytest.fixture
def mine(cluster: Cluster) -> Iterator[Standing]:
    standing = Standing(cluster)
    cluster.have_nodes(3)
    yield standing
    if standing.directory.exists():
        standing("stop", "mine")
        try:
            nothing_left(standing.left)
        finally:
            standing.directory.rename(standing.directory.with_name(f"was-{os.urandom(4).hex()}"))


def test_a_cluster_with_keys_is_joined_from_a_pod_checked_grown_shrunk_and_stopped(mine: Standing) -> None:
    said = mine.start("--protocol", "tls", nodes=2)
    assert "job j001-n2: 2 workers registered, first after" in said
    assert f"with the claim results (subPath outputs) mounted on {mine.cluster.directory / 'outputs'}" in said
    assert {stat.S_IMODE(path.stat().st_mode) for path in mine.directory.glob("tls/*")} == {0o600}
    names = sorted(pod["spec"]["hostname"] for pod in mine.cluster.pods())
    assert mine.inside(SCRIPT) == f"328350\n{names}\n"
    assert "ok: 2 of 2 workers" in mine.look("verify")
    assert mine.look("affinity").count("pass") == 2
    assert mine("grow", "+1").endswith("3 workers are connected\n")
    assert "ready, 3 of 3 workers on 3 nodes" in mine("status")
    assert mine("shrink", "-1").startswith("1 worker retired")
    assert len(mine.cluster.store.all("Job")) == 1
    assert "ready, 2 of 2 workers on 2 nodes" in mine("status")
    mine("grow", "+1")
    mine.cluster.store.delete(mine.pod("j003-n1", 0))
    (job,) = [one["metadata"]["name"] for one in mine.cluster.store.all("Job") if "-j003-" in one["metadata"]["name"]]
    until(lambda: "Failed" in mine.conditions(job), "the end of the job")
    # Seen on Kubernetes 1.36.2: "given back", exit code 0, of a pod that another hand had deleted.
    assert "job j003-n1 has ended: BackoffLimitExceeded" in mine("status", code=4)
    assert "job j001-n2: ended\ncluster mine is stopped\n" in mine("stop")
    nothing_left(mine.left)
    assert "rank 0: gpubench cluster stop" in (mine.directory / "jobs/j001-n2/cluster-rank0.log").read_text()


@pytest.mark.long
def test_a_killed_worker_and_a_pod_that_finds_no_node_are_told_and_a_deleted_pod_ends_the_cluster(
    mine: Standing,
) -> None:
    mine.start("--protocol", "tcp", nodes=2)
    assert "Unschedulable: 0/3 nodes are available" in mine("grow", "+2", "--wait", "5s", code=4)
    until(lambda: "3 of 4" in mine("status", code=4), "the worker of the pod that has a node")
    said = mine("status", code=4)
    assert "2 nodes, Running on k3: pod g-mine-j002-n2-" in said
    assert "Unschedulable: 0/3 nodes are available" in said
    assert "mine: 3 of 4 workers are connected" in said
    os.kill(mine.worker(1), signal.SIGKILL)
    until(lambda: "worker-1-0 ended: killed by SIGKILL" in mine("status", code=4), "the word of its death")
    assert "of 4 workers are connected" in mine("status", code=4)
    mine.cluster.store.delete(mine.pod("j001-n2", 0))
    until(lambda: "BackoffLimitExceeded" in mine("status", code=4), "the end of the job")
    assert "it has ended: " in mine("status", code=4)


def test_what_no_pod_could_use_is_refused_before_anything_is_written(mine: Standing) -> None:
    assert "has no kubernetes.claim" in mine.start(nodes=1, code=6, more="")
    assert "--set kubernetes.run_as_user=" in mine.start(nodes=1, code=6, more=CLAIM.replace("{user}", "4321"))
    assert not mine.directory.exists()
