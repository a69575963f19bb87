"""Rank 0 of a run of 4,096 nodes, for real: all other ranks are lines of one process that says what supervisors say."""

import json
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.node import rendezvous
from gpubench.node.control_channel import STOP, Connection, join
from gpubench.node.machine import facts
from gpubench.node.spec import Deadlines
from tests.conftest import need
from tests.node.dask_by_hand import write_dask
from tests.node.runners import Runner, finish
from tests.node.specs_by_hand import RUN

pytestmark = pytest.mark.long

RANKS = 4096
SILENT, LATE = 77, RANKS - 1


class Ranks:
    """The lines of all ranks but 0, and what each has heard."""

    def __init__(self, runner: Runner) -> None:
        path = rendezvous.path_for(runner.directory / "runs", RUN, "start-1")
        self.host, self.port = rendezvous.wait(path, "start-1", time.monotonic() + 60, lambda: False)["server"]
        self.facts = facts()
        self.connections: dict[int, Connection] = {}
        self.told: set[int] = set()
        self.ended: set[int] = set()
        self.sent = 0

    def join(self, rank: int) -> None:
        mine = {**self.facts, "host": f"n{rank:04d}"}
        self.sent += len(json.dumps(mine))
        self.connections[rank] = join(self.host, self.port, "start-1", rank=rank, facts=mine, timeout_s=60)

    def close(self) -> None:
        for line in self.connections.values():
            line.close()

    def serve(self, until: Callable[[], object], *, silent: int | None = None) -> None:
        deadline = time.monotonic() + 300
        while not until():
            assert time.monotonic() < deadline
            for rank, line in self.connections.items():
                if rank != silent and line.open:
                    self._serve(rank, line)
            time.sleep(0.01)

    def _serve(self, rank: int, line: Connection) -> None:
        line.beat()
        kinds = [message["kind"] for message in line.receive()]
        if "scheduler" in kinds:
            self.told.add(rank)
        if STOP in kinds and rank not in self.ended:
            self.ended.add(rank)
            node = {"rank": rank, **self.facts, "host": f"n{rank:04d}", "load": [], "environment": {}}
            line.send({"kind": "final_report", "node": node, "logs": {f"worker-{rank}-0.log": "worker stands\n"}})
            line.sock.shutdown(socket.SHUT_WR)


@pytest.fixture
def many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    need(before[1] >= 2 * RANKS, f"a hard limit of {2 * RANKS} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("silent", [None, SILENT], ids=["one late", "one silent"])
def test_rank_0_of_4096_hears_everybody_waits_for_a_late_one_and_misses_a_silent_one(
    silent: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Many systems allow 1024 open files unless a process asks for more.
    python = ["prlimit", f"--nofile=1024:{2 * RANKS}", sys.executable, "-I"]
    env = {"PYTHONPATH": str(write_dask(tmp_path / "stand-in"))}
    (tmp_path / "campaign").mkdir()
    deadlines = Deadlines(start_s=120.0, stop_s=120.0, silence_s=30.0)
    runner = Runner(python, tmp_path / "campaign", nodes=RANKS, env=env, deadlines=deadlines)
    leader = runner.start("--rank", "0", GPUBENCH_STOP_AT_EOF="the front end is gone")
    ranks = Ranks(runner)
    try:
        began = time.monotonic()
        for rank in range(1, RANKS - 1):
            ranks.join(rank)
        ranks.serve(lambda: len(ranks.told) == RANKS - 2)
        joined = time.monotonic() - began
        assert leader.poll() is None
        ranks.join(LATE)
        ranks.serve(lambda: LATE in ranks.told)
        began = time.monotonic()
        if silent is None:
            leader.send_signal(signal.SIGTERM)
        ranks.serve(lambda: len(ranks.ended) == RANKS - 1 - (silent is not None), silent=silent)
        status = Path(f"/proc/{leader.pid}/status").read_text(encoding="utf-8")
        peak_kib = int(status.partition("VmHWM:")[2].split()[0])
        _, said = finish(leader)
        ended = time.monotonic() - began
    finally:
        ranks.close()
        leader.kill()
        leader.communicate()
    record = runner.record()
    if silent is None:
        assert record.status == "skipped", (record.reason, said)
        assert len(record.hosts) == RANKS
    else:
        assert (record.status, record.reason) == ("lost", f"lost node rank {silent}"), said
        assert len(record.hosts) == RANKS, "of a silent one too, since it had joined"
    with capsys.disabled():
        print(
            f"\n{RANKS} ranks: all joined and told after {joined:.1f} s, {ranks.sent / 1e6:.1f} MB of facts at rank 0,"
            f" at most {peak_kib / 1024:.0f} MiB there, ended after {ended:.1f} s"
        )
