"""A run of very many supervisors, each the product's own code in a process and on a host of its own.

They meet by the real rendezvous file and talk over the real control channel. All but rank 0 are forks of one process,
because so many starts of Python take a machine of two cores longer than everything else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.node import rendezvous
from gpubench.node.spec import Deadlines
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, marked
from tests.conftest import need
from tests.node.dask_by_hand import write_dask
from tests.node.runners import Runner, finish
from tests.node.specs_by_hand import RUN, quiet_environment

pytestmark = pytest.mark.long

RANKS = int(os.environ.get("MANY_SUPERVISORS", "512"))
"""Of 1,024 on two cores beside other work, 997 had met after six minutes, when each woke ten times a second."""
KILLED = RANKS * 2 // 3
PROGRAM = Path(__file__).with_name("forked_supervisors.py")
STAND_IN = "#!/bin/sh\necho worker stands\nexec sleep 1500\n"
TOKEN = "start-1"
WAIT_S = 600.0


class Hosts:
    """All ranks of a runner's run."""

    def __init__(self, runner: Runner) -> None:
        self.leader = runner.start("--rank", "0", GPUBENCH_STOP_AT_EOF="1")
        self.scratch = runner.directory / "scratch"
        self.scratch.mkdir()
        stand_in = runner.directory.parent / "stand-in-worker"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        words = [runner.directory / "node.pyz", stand_in, "1", str(RANKS - 1), "run", "--spec", runner.path]
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(PROGRAM), *map(str, words)],
            env=quiet_environment(GPUBENCH_JOB_TOKEN=TOKEN, SCRATCHDIR=str(self.scratch)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def await_addresses(self) -> None:
        """Come back when every supervisor has told its worker the scheduler's address."""
        deadline = time.monotonic() + WAIT_S
        waiting = set(range(1, RANKS))
        while waiting:
            assert self.process.poll() is None
            assert self.leader.poll() is None, self.leader.communicate()
            assert time.monotonic() < deadline, f"{len(waiting)} ranks have no address, {sorted(waiting)[:9]} first"
            waiting -= {rank for rank in waiting if list(self.scratch.glob(f"n{rank:04d}/*/address"))}
            time.sleep(0.2)

    def end(self) -> dict[int, tuple[int, list[int]]]:
        """How each supervisor ended, and the processes that it left on its host, by rank."""
        said, _ = self.process.communicate(timeout=WAIT_S)
        rows = [json.loads(line) for line in said.splitlines()]
        return {row["rank"]: (row["code"], row["left"]) for row in rows}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    need(os.geteuid() == 0, "root, to give each supervisor a host of its own")
    env = {"PYTHONPATH": str(write_dask(tmp_path / "stand-in"))}
    (tmp_path / "campaign").mkdir()
    deadlines = Deadlines(start_s=WAIT_S, stop_s=WAIT_S / 2, silence_s=WAIT_S / 2)
    # Many systems allow 1024 open files unless a process asks for more.
    python = ["prlimit", "--nofile=1024:4096", sys.executable, "-I"]
    made = Runner(python, tmp_path / "campaign", nodes=RANKS, env=env, deadlines=deadlines)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


def test_very_many_supervisors_meet_hear_of_one_killed_worker_and_end_with_nothing_left(
    runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    hosts = Hosts(runner)
    try:
        hosts.await_addresses()
        met = time.monotonic() - began
        load = os.getloadavg()[0]
        assert rendezvous.path_for(runner.directory / "runs", RUN, TOKEN).exists()
        runs = runner.directory / "runs"
        (worker,) = marked(CLUSTER_VARIABLE, f"{runs}:{RUN}:{TOKEN}:{KILLED}".__eq__)
        began = time.monotonic()
        os.kill(worker, signal.SIGKILL)
        ended = hosts.end()
        code, said = finish(hosts.leader)
        last = time.monotonic() - began
    finally:
        hosts.process.kill()
        hosts.process.communicate()
    record = runner.record()
    assert (record.status, record.reason) == ("failed", f"worker-{KILLED}-0 ended: killed by SIGKILL"), said
    assert (record.cause["rank"], record.cause["last_lines"]) == (KILLED, ["worker stands"])
    assert record.hosts[1:] == [f"n{rank:04d}" for rank in range(1, RANKS)]
    assert code == 0
    assert ended == {rank: (0, []) for rank in range(1, RANKS)}
    with zipfile.ZipFile(runner.run_dir() / "logs.zip") as logs:
        assert {f"rank{rank}/worker-{rank}-0.log" for rank in range(RANKS)} <= set(logs.namelist())
    assert marked(CLUSTER_VARIABLE, lambda value: value.startswith(f"{runs}:")) == {}
    assert [path for path in hosts.scratch.rglob("*") if path.parent != hosts.scratch] == []
    assert not list(runner.directory.glob("gpubench-*"))
    assert runner.left() == ["scratch"]
    with capsys.disabled():
        print(f"\n{RANKS} supervisors: met after {met:.0f} s (load {load:.0f}), ended {last:.0f} s after a kill")
