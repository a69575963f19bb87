"""A node that leaves a standing cluster hands its data over first, and stays if there is no place for it."""

import contextlib
import json
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.cluster_follower import retire
from gpubench.node.spec.cluster import (
    GONE,
    JOINED,
    LEAVING,
    READY,
    REQUESTS,
    RETIRED,
    STATE_FILE,
    TOKEN_FILE,
    ClusterState,
)
from tests.node.runners import SHORT, until
from tests.node.specs_by_hand import quiet_environment, run_spec, write_campaign

pytestmark = pytest.mark.integration

STORE = """
from distributed import Client
client = Client(ADDRESS)
names = {info["name"]: address for address, info in client.scheduler_info()["workers"].items()}
for number in range(4):
    data, = client.scatter([[number] * 9], workers=[names["worker-1-0"]], hash=False)
    client.publish_dataset(data, name=str(number))
"""
LOAD = """
from distributed import Client
client = Client(ADDRESS)
print([client.get_dataset(str(number)).result(30)[0] for number in range(4)])
"""
ALONE = """
from distributed import Client
client = Client(ADDRESS)
client.retire_workers(names=["worker-0-0"])
"""


@pytest.mark.parametrize(
    ("there", "retired", "stays"),
    [
        ([[], ["a"]], [], False),
        ([["a"], []], [["a"]], False),
        ([["a"], ["b"], []], [["a"], ["b"]], False),
        ([["a", "b"], ["b", "c"]], [["a", "b"]], True),
    ],
)
def test_a_worker_that_registers_while_its_node_leaves_is_retired_too_or_was_never_asked_for(
    monkeypatch: pytest.MonkeyPatch, there: list[list[str]], retired: list[list[str]], stays: bool
) -> None:
    """Seen: it registered between two questions, and the node stayed until its job's end for data that there was not.

    Args:
        there: the workers of the node, at each question.
        retired: what Dask was told to retire.
        stays: whether the node can't leave.
    """
    answers, told = iter(there), list[list[str]]()
    client = types.SimpleNamespace(
        run_on_scheduler=lambda *_: next(answers),
        retire_workers=lambda workers, close_workers: told.append(workers),  # noqa: ARG005
        close=lambda: None,
    )
    monkeypatch.setattr("distributed.Client", lambda *_, **__: client)
    with pytest.raises(SystemExit) if stays else contextlib.nullcontext():
        assert retire("tcp://127.0.0.1:1", 1) == 0
    assert told == retired


class Nodes:
    """Two jobs of one cluster on this machine, a node each; the first has the scheduler."""

    python = sys.executable

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: list[subprocess.Popen[str]] = []
        (directory / TOKEN_FILE).write_text("secret")
        (directory / REQUESTS).mkdir()
        (directory / "scratch").mkdir()
        write_campaign(directory, run_spec())
        for number in (0, 1):
            folder = directory / "jobs" / f"j{number}" / "specs"
            folder.mkdir(parents=True)
            spec = run_spec(campaign="mine", job=f"j{number}", workloads=[], deadlines=SHORT)
            (folder / "nodes.json").write_text(spec.dump())

    def spawn(self, number: int, *words: str) -> subprocess.Popen[str]:
        """The node of one of the jobs."""
        spec = self.directory / "jobs" / f"j{number}" / "specs" / "nodes.json"
        here = ("--first-rank", str(number), "--rank", "0")
        process = subprocess.Popen(
            [self.python, "-I", self.directory / "node.pyz", "cluster", "--spec", spec, *here, *words],
            env=quiet_environment(SCRATCHDIR=str(self.directory / "scratch")),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def start(self, number: int) -> subprocess.Popen[str]:
        """The same; comes back when its worker is there."""
        process = self.spawn(number)
        until(lambda: self.node(number).get("connected") and self.state().phase == READY)
        return process

    def state(self) -> ClusterState:
        return ClusterState.parse((self.directory / STATE_FILE).read_text())

    def node(self, rank: int) -> dict[str, Any]:
        if not (self.directory / STATE_FILE).exists():
            return {}
        return next((node for node in self.state().nodes if node["rank"] == rank), {})

    def request(self, name: str) -> None:
        (self.directory / REQUESTS / f"{name}.part").write_text(json.dumps({"leave": [1]}))
        (self.directory / REQUESTS / f"{name}.part").rename(self.directory / REQUESTS / f"{name}.json")

    def script(self, text: str) -> str:
        words = [self.python, "-I", "-c", text.replace("ADDRESS", repr(self.state().address))]
        return subprocess.run(words, env=quiet_environment(), capture_output=True, text=True, check=True).stdout


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    found = Nodes(tmp_path)
    yield found
    for process in found.processes:
        process.terminate()
    for process in found.processes:
        process.communicate(timeout=120)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_node_that_is_given_back_or_signalled_hands_its_data_over(nodes: Nodes) -> None:
    nodes.start(0)
    back = nodes.start(1)
    nodes.script(STORE)
    nodes.request("first")
    assert (back.wait(120), nodes.processes[0].poll()) == (0, None)
    until(lambda: nodes.node(1)["state"] == RETIRED)
    assert nodes.script(LOAD) == "[0, 1, 2, 3]\n"
    assert nodes.state().events == []
    for name in ("late", "later"):  # rank 0 has written what came of the first when it reads the second
        nodes.request(name)
        until(lambda: list((nodes.directory / REQUESTS).iterdir()) == [])
    assert nodes.node(1)["state"] == RETIRED

    ended = nodes.start(1)
    assert nodes.node(1)["state"] == JOINED
    ended.send_signal(signal.SIGTERM)
    assert ended.wait(120) == 0
    until(lambda: nodes.node(1)["state"] == GONE)
    assert nodes.script(LOAD) == "[0, 1, 2, 3]\n"
    assert [event["what"] for event in nodes.state().events] == ["node rank 1 leaves: interrupted by SIGTERM"]


def test_a_node_whose_job_is_nearly_over_takes_leave(nodes: Nodes) -> None:
    nodes.start(0)
    assert nodes.spawn(1, "--lasts", "1").wait(120) == 0
    until(lambda: nodes.node(1)["state"] == RETIRED)
    assert [event["what"] for event in nodes.state().events] == ["node rank 1 leaves: the job's time is nearly over"]


def test_a_node_whose_data_has_no_other_place_stays_when_it_is_to_be_given_back(nodes: Nodes) -> None:
    nodes.start(0)
    nodes.start(1)
    nodes.script(STORE)
    nodes.script(ALONE)
    for name in ("first", "again"):
        nodes.request(name)
        until(lambda name=name: nodes.node(1).get("request") == name and nodes.node(1)["state"] != LEAVING)
        assert nodes.node(1)["state"] == JOINED
        assert (
            "can't leave: exit code 1: no other worker has a place for the data of" in nodes.state().events[-1]["what"]
        )
    assert nodes.script(LOAD) == "[0, 1, 2, 3]\n"
