"""Whole runs whose workload is `tasks` on a real parsl: what they leave when they end, however they end."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from gpubench.node.spec import Deadlines, WorkloadSpec
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, marked
from gpubench.render.node_half import pack
from tests.node.runners import Runner, until
from tests.workloads.running import complete

pytestmark = pytest.mark.system
SLOW = Deadlines(start_s=120.0, stop_s=30.0, silence_s=60.0)


def tasks(backend: str, **params: Any) -> WorkloadSpec:
    return WorkloadSpec("tasks", backend, complete("tasks", params), reps=1, warmup=0, timeout_s=300.0)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Runner]]:
    runners: list[Runner] = []

    def start(*workloads: WorkloadSpec, **changes: Any) -> Runner:
        half = hashlib.sha256(pack(resources.node_half())).hexdigest()
        facts = {"workloads": workloads, "deadlines": SLOW, "node_half": half, **changes}
        runners.append(Runner([sys.executable, "-I"], tmp_path, **facts))
        return runners[-1]

    yield start
    for process in [process for runner in runners for process in runner.processes]:
        process.kill()
        process.communicate()


def living(runner: Runner) -> dict[int, str]:
    return marked(CLUSTER_VARIABLE, lambda mark: str(runner.directory) in mark)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.long)], ids=lambda number: number.name
)
def test_parsl_s_processes_die_with_the_run_also_when_its_supervisor_is_killed(
    make: Callable[..., Runner], number: signal.Signals
) -> None:
    runner = make(tasks("parsl", mode="estimate", target=600.0))
    supervisor = runner.start()

    def pools() -> bool:
        commands = [Path(f"/proc/{pid}/cmdline") for pid in living(runner)]
        return any(b"process_worker_pool" in command.read_bytes() for command in commands if command.exists())

    until(pools)
    os.kill(supervisor.pid, number)
    supervisor.wait(150)
    until(lambda: not living(runner))
    if number == signal.SIGTERM:
        assert runner.left() == []
        assert runner.record().status == "skipped"
