"""Workload `tasks` through a real parsl: its own workers, a user's config, and an end without leavings."""

import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.workloads import families, process_reaper, tasks_parsl
from gpubench.node.workloads.base import UnavailableError, WorkloadContext
from gpubench.node.workloads.task_clients import MARK, Clients
from tests.node.runners import until
from tests.workloads.running import complete, measured_rightly, run

pytestmark = pytest.mark.system
TEST = "GPUBENCH_TEST_OF_PARSL"
THREADS = """
from parsl.config import Config
from parsl.executors import ThreadPoolExecutor
print("a config may print")
open("executed", "a").write("x")
{what}
"""
CONFIG = "Config(executors=[ThreadPoolExecutor(max_threads=2)], usage_tracking=0)"
OWNER = """
import sys, time
from gpubench.node.workloads.task_clients import Clients
facts = {"argsize": 0, "config": "", "provider": "local", "partition": "", "account": "", "address": "127.0.0.1",
         "nodes": 1, "workers_per_node": 2}
clients = Clients("tasks_parsl:ParslSubmitter", [facts])
print(clients.batch(3).results, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(TEST, str(tmp_path))


def living() -> dict[int, str]:
    """What a test of this file has started; others beside it start such processes, too."""
    own = process_reaper.marked(TEST, os.environ[TEST].__eq__)
    return {pid: mark for pid, mark in process_reaper.marked(MARK, bool).items() if pid in own}


def commands(ids: set[int]) -> set[bytes]:
    """The command lines of those that still are there."""
    found = set()
    for pid in ids:
        with contextlib.suppress(OSError):
            found.add(Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


def reason(cluster: WorkloadContext, **params: Any) -> str:
    with pytest.raises(UnavailableError) as caught:
        run(families.create("tasks", cluster, "parsl", complete("tasks", {"count": 3, **params})))
    return str(caught.value)


def test_parsl_has_as_many_workers_as_the_cluster_has_threads_and_leaves_nothing(
    cluster: WorkloadContext, tmp_path: Path
) -> None:
    before = living()
    params = {"mode": "explicit", "batches": [20, 40], "argsize": 100}
    result = measured_rightly(cluster, "tasks", params, backend="parsl", moves=False, reps=2)
    assert [[batch["tasks"] for batch in batches] for batches in result.details["repetitions"]] == [[20, 40]] * 3
    assert result.details["executors"] == ["HighThroughputExecutor"]
    assert result.details["providers"] == ["LocalProvider"]
    assert result.details["parsl"] == importlib.metadata.version("parsl")
    latency = result.details["repetitions"][0][0]["latency_s"]
    assert 0 < latency["p50"] <= latency["max"]
    assert living() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["config = " + CONFIG, "def fresh_config():\n    return " + CONFIG])
def test_a_user_s_config_is_executed_once_and_measured(tmp_path: Path, what: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(THREADS.format(what=what).replace('"executed"', repr(str(tmp_path / "executed"))))
    clients = Clients("tasks_parsl:ParslSubmitter", [{"argsize": 0, "config": str(path)}])
    try:
        assert clients.batch(5).results == {"7": 5}
    finally:
        clients.close()
    assert (tmp_path / "executed").read_text() == "x"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["executed", "mine.py"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import nothing_of_that_name",
            "can't be imported: ModuleNotFoundError: No module named 'nothing_of_that_name'",
        ),
        ("raise SystemExit(3)", "can't be imported: SystemExit: 3"),
        ("x = ", "can't be imported: SyntaxError"),
        ("x = 1", "defines neither `config` nor `fresh_config()`"),
        ("config = 5", "`config` is a int, no parsl Config"),
    ],
)
def test_a_config_that_can_not_be_used_says_why_and_the_others_go_on(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UnavailableError) as caught:
        tasks_parsl.user_config(path)
    assert str(caught.value).startswith(f"parsl config {path} ")
    assert message in str(caught.value)


def test_a_config_that_is_not_there_ends_the_workload_with_its_name(cluster: WorkloadContext, tmp_path: Path) -> None:
    before = living()
    assert reason(cluster, parsl_config=str(tmp_path / "none.py")) == f"parsl config {tmp_path}/none.py is not a file"
    assert living() == before


def test_what_the_local_provider_can_not_do_is_said_before_anything_starts(cluster: WorkloadContext) -> None:
    assert reason(cluster, clients=3) == "3 clients of parsl need as many workers, each its own; there are 2"
    wide = WorkloadContext(cluster.client, ["tcp://10.0.0.1:1", "tcp://10.0.0.2:1"], 1, "cpu", "tcp")
    assert "starts workers on one node, and this cluster has 2" in reason(wide)


def test_interchange_and_workers_die_with_the_process_that_measures_even_when_it_is_killed(tmp_path: Path) -> None:
    before = set(living())
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, env=env) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "{'7': 3}\n"
        until(lambda: len(commands(set(living()) - before)) >= 3)  # the client, the interchange, the manager
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not set(living()) - before)


def test_the_slurm_provider_asks_for_one_block_of_the_cluster_s_nodes_with_workers_of_this_python() -> None:
    facts = {"provider": "slurm", "partition": "gpu", "account": "", "address": "10.0.0.1", "nodes": 2}
    (executor,) = tasks_parsl.own_config({**facts, "workers_per_node": 4}).executors
    provider = executor.provider
    assert (provider.partition, provider.account, provider.nodes_per_block) == ("gpu", None, 2)
    assert (provider.init_blocks, provider.max_blocks, executor.max_workers_per_node) == (1, 1, 4)
    assert executor.address == "10.0.0.1"
    assert executor.launch_cmd.startswith(f"{sys.executable} -I -m parsl.")
