"""Whole runs whose workload is `tasks` on a real parsl: what they leave when they end, however they end."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.node.spec import Deadlines, WorkloadSpec
from tests.node.runners import Runner, until
from tests.node.specs_by_hand import node_half
from tests.workloads.running import complete

pytestmark = pytest.mark.system
SLOW = Deadlines(start_s=120.0, stop_s=30.0, silence_s=60.0)
PARAMS = complete("tasks", {"mode": "estimate", "target": 600.0})
TASKS = WorkloadSpec("tasks", "parsl", PARAMS, reps=1, warmup=0, timeout_s=300.0)


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    made = Runner([sys.executable, "-I"], tmp_path, workloads=[TASKS], deadlines=SLOW, node_half=node_half())
    yield made
    made.kill()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.long)], ids=lambda number: number.name
)
def test_parsl_s_processes_die_with_the_run_also_when_its_supervisor_is_killed(
    runner: Runner, number: signal.Signals
) -> None:
    supervisor = runner.start()

    def pools() -> bool:
        commands = [Path(f"/proc/{pid}/cmdline") for pid in runner.living()]
        return any(b"process_worker_pool" in command.read_bytes() for command in commands if command.exists())

    until(pools)
    os.kill(supervisor.pid, number)
    supervisor.wait(150)
    until(lambda: not runner.living())
    if number == signal.SIGTERM:
        assert runner.left() == []
        assert runner.record().status == "skipped"
