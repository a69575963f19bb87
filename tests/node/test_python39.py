"""The node half on a real Python 3.9 that has nothing but the standard library: images of 2022 have no more.

The supervisors run in full here; what they start finds no dask, which is one way for a run to fail.
"""

import dataclasses
import hashlib
import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from gpubench.node.spec import Deadlines
from tests.node.runners import SHORT, Runner, finish, until
from tests.node.specs_by_hand import RUN

COMPILE = """
import sys
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as source:
        compile(source.read(), path, "exec", dont_inherit=True)
print(len(sys.argv) - 1)
"""


@pytest.fixture
def campaign(python39: str, tmp_path: Path) -> Iterator[Callable[..., Runner]]:
    runners: list[Runner] = []

    def make(**changes: Any) -> Runner:
        runners.append(Runner([python39, "-I", "-S"], tmp_path, **changes))
        return runners[-1]

    yield make
    for runner in runners:
        runner.kill()


def test_every_file_of_the_node_half_compiles(python39: str) -> None:
    paths = [str(resources.PACKAGE.parent / name) for name in resources.node_half()]
    done = subprocess.run(
        [python39, "-I", "-W", "error", "-c", COMPILE, *paths], capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.stdout, done.stderr) == (f"{len(paths)}\n", "")
    assert len(paths) > 30


def test_nobody_catches_a_timeout_that_is_another_one_there() -> None:
    """Before Python 3.11 ``asyncio.TimeoutError``, which Dask raises, is no ``TimeoutError``; before 3.10 nor is
    ``socket.timeout``.
    """
    texts = {name: data.decode("utf-8") for name, data in resources.node_half().items()}
    caught = re.compile(r"(?:except|suppress)\b[^\n#]*(?<![\w.])TimeoutError\b")
    assert not [name for name, text in texts.items() if caught.search(text)]
    assert any("asyncio.TimeoutError" in text for text in texts.values())


def test_a_skipped_run_leaves_a_whole_record_with_the_reason(campaign: Callable[..., Runner]) -> None:
    runner = campaign()
    assert runner.run("--rank", "0", "--skip", "no time left: é") == (0, "")
    record = runner.record()
    assert (record.status, record.reason, record.attempt) == ("skipped", "no time left: é", 1)
    assert [(item.workload, item.status, item.reason) for item in record.workloads] == [
        ("tasks", "skipped", "no time left: é")
    ]
    assert sorted(path.name for path in runner.run_dir().iterdir()) == ["logs.zip", "provenance.json", "run.json"]
    assert runner.left() == []


def test_a_checkout_in_the_working_directory_is_not_imported_instead(campaign: Callable[..., Runner]) -> None:
    runner = campaign()
    trap = runner.directory / "gpubench"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('the checkout in the cwd was imported')\n")
    assert runner.run("--skip", "why") == (0, "")
    archive = hashlib.sha256((runner.directory / "node.pyz").read_bytes()).hexdigest()
    assert runner.record().node_half == archive


def test_only_rank_0_writes_a_record_of_a_skipped_run(campaign: Callable[..., Runner]) -> None:
    runner = campaign(nodes=2)
    assert runner.run("--rank", "1", "--skip", "why") == (0, "")
    assert not (runner.directory / "runs").exists()


def test_a_skipped_run_can_run_later_and_a_finished_one_is_not_repeated(campaign: Callable[..., Runner]) -> None:
    runner = campaign()
    runner.run("--skip", "why")
    assert runner.run()[0] == 0
    assert [runner.record(attempt).status for attempt in (1, 2)] == ["skipped", "failed"]
    assert runner.run() == (0, "")
    assert not runner.run_dir(3).exists()


def test_a_cluster_that_does_not_start_is_a_failed_run_with_cause_and_last_lines(
    campaign: Callable[..., Runner],
) -> None:
    runner = campaign()
    assert runner.run(UCX_TLS="bogus") == (0, "")
    record = runner.record()
    assert (record.status, record.reason) == (
        "failed",
        "the scheduler ended while starting: exit code 1: ModuleNotFoundError: No module named 'distributed'",
    )
    assert record.cause["process"] == "scheduler"
    assert record.cause["last_lines"][-1] == "ModuleNotFoundError: No module named 'distributed'"
    assert [(item.workload, item.status, item.reason) for item in record.workloads] == [
        ("tasks", "failed", record.reason)
    ]
    assert record.warnings == ["dropped from the environment: UCX_TLS"]
    with zipfile.ZipFile(runner.run_dir() / "logs.zip") as logs:
        assert b"No module named 'distributed'" in logs.read("rank0/forks.log")
    (node,) = runner.provenance()["nodes"]
    assert node["rank"] == 0
    assert "UCX_TLS" not in node["environment"]
    assert runner.left() == []


def test_a_node_whose_rank_0_fails_before_they_meet_leaves_at_once_and_in_peace(
    campaign: Callable[..., Runner],
) -> None:
    runner = campaign(nodes=2)
    runner.spec = dataclasses.replace(runner.spec, deadlines=dataclasses.replace(SHORT, start_s=1e6))
    runner.path.write_text(runner.spec.dump())
    second = runner.start("--rank", "1")
    until(lambda: any(runner.directory.glob(f"gpubench-{RUN}-1-*")))
    assert runner.run("--rank", "0") == (0, "")
    assert finish(second) == (0, "")
    assert runner.record().status == "failed"
    assert runner.left() == []


def test_a_node_that_comes_when_the_run_is_over_has_nothing_to_do(campaign: Callable[..., Runner]) -> None:
    runner = campaign(nodes=2)
    assert runner.run("--rank", "0")[0] == 0
    assert runner.run("--rank", "1") == (0, "")


def test_a_node_whose_rank_0_never_comes_gives_up(campaign: Callable[..., Runner]) -> None:
    runner = campaign(nodes=2)
    runner.path.write_text(dataclasses.replace(runner.spec, deadlines=Deadlines(start_s=0.2)).dump())
    code, said = runner.run("--rank", "1")
    assert code == 40
    assert "gpubench run, rank 1: rank 0 did not publish " in said
    assert not list(runner.directory.glob("gpubench-*"))


def test_an_interface_that_is_not_there_is_a_failed_run_that_names_it(campaign: Callable[..., Runner]) -> None:
    runner = campaign(interface="ib7")
    assert runner.run()[0] == 0
    assert runner.record().reason.startswith(
        "the node's system refused: interface ib7 has no IPv4 address here (there is: "
    )


def test_runs_that_can_not_be_written_are_a_fault_of_the_node(campaign: Callable[..., Runner]) -> None:
    runner = campaign()
    (runner.directory / "runs").write_text("a file is in the way")
    code, said = runner.run()
    assert code == 40
    assert said.startswith("gpubench run: ")
    assert said.count("\n") == 1
