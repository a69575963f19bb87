"""``gpubench cluster`` on this machine: it outlives its command, is joined, checked, grown, shrunk, killed, stopped."""

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.render.cluster import client_python, variables
from gpubench.store.clusters import Cluster
from tests.cli.campaigns import nothing_left
from tests.conftest import Run, need, plain_environment
from tests.node.runners import until
from tests.node.test_by_hand_cluster import listening

LOOPBACK = "0100007F"
"""127.0.0.1 as the kernel writes it."""
START = ("--ucx", "1.22.0", "--name", "mine", "--workers", "1", "--time", "5m")
STORE = """
from dask.distributed import Client, worker_client
client = Client(scheduler_file=FILE)
for number, future in enumerate(client.scatter([[number] * 9 for number in range(6)], hash=False)):
    client.publish_dataset(future, name=str(number))
print(sorted(len(keys) for keys in client.has_what().values()))
"""
LOAD = """
from dask.distributed import Client
client = Client(scheduler_file=FILE)
print([client.get_dataset(str(number)).result()[0] for number in range(6)])
"""
BIND = """
import os
from dask.distributed import Client
def bind():
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {sorted(os.sched_getaffinity(0))[0]})
Client(scheduler_file=FILE).run(bind)
"""


class Standing:
    """One cluster in a test's directory."""

    def __init__(self, run: Run, directory: Path) -> None:
        self._run = run
        self.directory = directory / "outputs" / "clusters" / "mine"
        self.file = self.directory / "scheduler.json"

    def __call__(self, *words: str | Path, code: int = 0) -> str:
        done = self._run("cluster", *words)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def until_it_says(self, words: str, code: int) -> None:
        """Asks for the status until *words* stand in it; the exit code that came with them is *code*.

        Until then the cluster may be on its way: what had just been killed still answers ``ready`` for a moment.
        """
        until(lambda: words in (seen := self._run("cluster", "status")).stdout + seen.stderr)
        self("status", code=code)

    def look(self, word: str, *words: str, code: int = 0) -> str:
        return self(word, *words, code=code)

    def script(self, text: str, *, keys: bool = True) -> subprocess.CompletedProcess[str]:
        """A user's script, as ``start`` says that it is run."""
        record = Cluster.open(self.directory).record
        command = [client_python(record), "-c", text.replace("FILE", repr(str(self.file)))]
        env = variables(record) if keys else {}
        return subprocess.run(command, env=plain_environment(env), capture_output=True, text=True, check=False)

    def record(self) -> Any:
        return json.loads((self.directory / "cluster.json").read_text())

    def processes(self) -> dict[int, str]:
        """Supervisors and all that they own, by id: command lines."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if str(self.directory) in line + (entry / "environ").read_text(errors="replace"):
                    found[int(entry.name)] = line
            except OSError:
                continue
        return found

    def left(self) -> list[str]:
        """What a stopped cluster must not leave: processes, scratch directories, what lets anybody join."""
        scratch = [str(path) for path in Path("/tmp").glob(f"gpubench-{self.record()['identity']}-*")]
        files = [name for name in ("token", "tls", "scheduler.json") if (self.directory / name).exists()]
        meetings = [str(path) for path in self.directory.glob(".rendezvous-*")]
        return [*self.processes().values(), *scratch, *files, *meetings]


@pytest.fixture
def mine(gpubench: Run, tmp_path: Path) -> Iterator[Standing]:
    standing = Standing(gpubench, tmp_path)
    yield standing
    if standing.directory.exists():
        standing("stop", "mine")
        nothing_left(standing.left)


@pytest.mark.integration
def test_a_cluster_with_keys_is_joined_checked_grown_and_shrunk_without_losing_anything(
    mine: Standing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OUTDIR", "SCRATCHDIR", "GPUBENCH_BLOCKS", "GPUBENCH_RANK"):
        monkeypatch.setenv(name, "9")  # for something else
    said = mine("start", *START, "--protocol", "tls", "--nodes", "1")
    assert "job j001-n1: 1 worker registered, first after" in said
    assert "can run code" not in said
    keys = sorted((mine.directory / "tls").iterdir())
    assert [path.name for path in keys] == ["ca.pem", "client.key", "client.pem", "cluster.key", "cluster.pem"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys} == {0o600}
    secrets = [path.read_text().splitlines()[1] for path in keys if path.suffix == ".key"]
    written = "".join(
        path.read_text() for path in mine.directory.rglob("*.*") if path.suffix in {".json", ".log", ".sh"}
    )
    assert not [secret for secret in secrets if secret in written + said]

    refused = mine.script(LOAD, keys=False)
    assert refused.returncode == 1
    assert "TLS" in refused.stderr
    host, _, port = json.loads(mine.file.read_text())["address"].removeprefix("tls://").rpartition(":")
    assert host == "127.0.0.1"
    assert set().union(*(listening(pid) for pid in mine.processes())) == {LOOPBACK}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", int(port)), timeout=5)

    assert mine("grow", "+1").endswith("2 workers are connected\n")
    assert mine.script(STORE).stdout == "[3, 3]\n"
    said = mine.look("verify")
    assert "ok: python" in said
    assert "ok: 2 of 2 workers" in said
    assert mine.look("affinity").count("pass") == 2

    assert mine("shrink", "-1").startswith("1 worker retired")
    assert mine.script(LOAD).stdout == "[0, 1, 2, 3, 4, 5]\n"
    assert "ready, 1 of 1 workers on 1 node" in mine("status")

    assert "'gpubench cluster stop mine' ends it" in next(tmp_path.rglob("queue-*.lock")).read_text()
    mine("stop")
    assert "cluster mine is stopped" in mine.look("verify", "mine", code=4)


@pytest.mark.system
def test_workers_packed_on_one_core_are_called_so_and_a_killed_job_is_told(mine: Standing) -> None:
    need(len(os.sched_getaffinity(0)) > 1, "two CPUs")
    said = mine("start", *START, "--protocol", "tcp", "--nodes", "2")
    assert (
        "every process that reaches it over lo can run code as you; with --protocol tls, only clients that have" in said
    )
    assert mine.script(BIND).returncode == 0
    said = mine.look("affinity", code=6)
    assert said.count("FAIL: 2 workers with 2 threads packed on 1 of") == 2
    assert "2 of 2 workers have the wrong CPUs or GPUs" in said

    mine("grow", "+1")
    job = json.loads((mine.directory / "jobs" / "j002-n1" / "local.json").read_text())["pid"]
    os.killpg(job, signal.SIGKILL)
    mine.until_it_says("j002-n1 has ended", code=4)
    scheduler = next(pid for pid, line in mine.processes().items() if line.startswith("dask scheduler"))
    os.kill(scheduler, signal.SIGKILL)
    mine.until_it_says("it has ended: the scheduler ended: killed by SIGKILL", code=4)


@pytest.mark.system
@pytest.mark.long
def test_a_cluster_whose_supervisors_were_killed_leaves_nothing_when_it_is_stopped(mine: Standing) -> None:
    mine("start", *START, "--protocol", "tcp")
    # First all of them are stopped: none shall see another's end, and say so, before its own.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in mine.processes():
            os.kill(pid, number)
    mine.until_it_says("it has ended: KILLED", code=4)
    assert mine.left() != []
