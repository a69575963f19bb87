"""Nobody but the run gets into its cluster, and nothing that others send is unpickled."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.node import admission
from tests.node.specs_by_hand import quiet_environment

ROOT = Path(__file__).parents[2]
CLUSTER = """
import asyncio, json, sys
from gpubench.node import admission, gpu_worker
admission.close_to_others()
from distributed import Nanny, Scheduler, Worker
async def main(protocol, kind):
    where = dict(interface="lo", protocol=protocol, dashboard_address="127.0.0.1:0")
    async with Scheduler(port=0, **where) as scheduler:
        Kind, more = {"worker": (Worker, {}), "nanny": (Nanny, {"preload": [gpu_worker.PRELOAD]})}[kind]
        async with Kind(scheduler.address, nthreads=1, **where, **more) as worker:
            address = worker.worker_address if kind == "nanny" else worker.address
            print(json.dumps([scheduler.address, address]), flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
"""
CLIENT = """
import sys
from gpubench.node import admission
admission.close_to_others()
from distributed import Client
with Client(sys.argv[1], timeout=6) as client:
    print("answer", client.submit(sum, [1, 2, 3]).result(timeout=60))
"""
ANSWER = "answer 6"
SUBMITTING_PROCESSES = """
import sys
from gpubench.node.workloads.task_clients import Clients
clients = Clients("tasks:OwnClient", [{"scheduler": sys.argv[1], "argsize": 0}] * 2)
print("answer", sum(clients.batch(6).results.values()))
clients.close()
"""
INTRUDER = """
import asyncio, os, sys
from distributed.comm.addressing import parse_address
from distributed.comm.registry import get_backend
from distributed.protocol.serialize import ToPickle
class Evil:
    def __reduce__(self):
        return os.mkdir, (self.folder,)
async def intrude(address, folder):
    scheme, where = parse_address(address)
    evil = Evil()
    evil.folder = folder
    try:
        comm = await asyncio.wait_for(get_backend(scheme).get_connector().connect(where), 20)
        await comm.write({"compression": None, "python": (3, 11), "pickle-protocol": 5, "evil": ToPickle(evil)})
        await asyncio.wait_for(comm.read(), 20)  # what the listener says of itself, when it lets one in
        end = asyncio.ensure_future(comm.read())  # where the intruder isn't let in, only the end is left to come
        for _ in range(200):
            if os.path.isdir(folder):
                break
            await asyncio.wait({end}, timeout=0.1)
            if end.done():
                break
    except (OSError, asyncio.TimeoutError):
        pass
async def main():
    for address, folder in zip(sys.argv[1::2], sys.argv[2::2]):
        await intrude(address, folder)
asyncio.run(main())
"""


class Python:
    """A Python with Dask, and programs that it runs."""

    def __init__(self, executable: str, protocol: str, env: dict[str, str], directory: Path) -> None:
        self.executable, self.protocol, self.directory = executable, protocol, directory
        self.env = quiet_environment(PYTHONPATH=str(ROOT), **env)
        self.clusters: list[subprocess.Popen[str]] = []

    def command(self, program: str, *words: str) -> list[str]:
        path = self.directory / f"{abs(hash(program))}.py"
        path.write_text(program)
        return [self.executable, str(path), *words]

    def cluster(self, kind: str, token: str) -> list[str]:
        """Addresses of a scheduler and of its worker."""
        process = subprocess.Popen(
            self.command(CLUSTER, self.protocol, kind),
            env=self.env | self.secret(token),
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.clusters.append(process)
        assert process.stdout is not None
        addresses: list[str] = json.loads(process.stdout.readline())
        return addresses

    def run(self, program: str, *words: str, token: str = "") -> subprocess.CompletedProcess[str]:
        command = self.command(program, *words)
        env = self.env | self.secret(token)
        return subprocess.run(
            command, env=env, cwd=self.directory, capture_output=True, text=True, check=False, timeout=120
        )

    def secret(self, token: str) -> dict[str, str]:
        return admission.environment(self.protocol, token) if token else {}

    def end(self) -> None:
        for process in self.clusters:
            process.communicate(timeout=60)


@pytest.fixture
def tcp(tmp_path: Path) -> Iterator[Python]:
    python = Python(sys.executable, "tcp", {}, tmp_path)
    yield python
    python.end()


@pytest.fixture
def ucx(tmp_path: Path) -> Iterator[Python]:
    image, _ = ensure(["1.22.0"], images_root(), lambda line: print(line, file=sys.stderr))["1.22.0"]
    python = Python(image.python, "ucxx", {**image.env, "UCX_TLS": "tcp"}, tmp_path)
    yield python
    python.end()


def nobody_else_gets_in(python: Python, scheduler: str, worker: str) -> None:
    for token in ("", "another"):
        done = python.run(CLIENT, scheduler, token=token)
        assert done.returncode == 1
        assert ANSWER not in done.stdout
    made = [python.directory / name for name in ("made-by-scheduler", "made-by-worker")]
    done = python.run(INTRUDER, scheduler, str(made[0]), worker, str(made[1]))
    assert done.returncode == 0, done.stderr
    assert [path for path in made if path.exists()] == []
    for program in (CLIENT, SUBMITTING_PROCESSES):
        done = python.run(program, scheduler, token="mine")
        assert ANSWER in done.stdout, done.stderr


def without_it_an_intruder_runs_code(python: Python) -> None:
    """The test's own test."""
    scheduler, _ = python.cluster("worker", "")
    made = python.directory / "made"
    said = python.run(INTRUDER, scheduler, str(made))
    assert made.is_dir(), said.stderr


@pytest.mark.parametrize("kind", ["worker", "nanny"])
def test_over_tcp_only_who_has_the_secret_gets_in(tcp: Python, kind: str) -> None:
    nobody_else_gets_in(tcp, *tcp.cluster(kind, "mine"))


def test_over_tcp_an_open_cluster_runs_the_code_of_an_intruder(tcp: Python) -> None:
    without_it_an_intruder_runs_code(tcp)


@pytest.mark.system
def test_over_ucx_only_who_has_the_secret_gets_in(ucx: Python) -> None:
    nobody_else_gets_in(ucx, *ucx.cluster("worker", "mine"))


@pytest.mark.system
@pytest.mark.long
def test_over_ucx_an_open_cluster_runs_the_code_of_an_intruder(ucx: Python) -> None:
    without_it_an_intruder_runs_code(ucx)
