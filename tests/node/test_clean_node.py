"""A run starts on a clean node: what an earlier run of this campaign left is ended, and nothing else is."""

import dataclasses
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.node.process import Child, stop_all
from gpubench.node.run_node import NotCleanError, RunNode, supervisor_of, unused_segments
from gpubench.node.spec import Deadlines
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, marked
from tests.node.runners import until
from tests.node.specs_by_hand import RUN, quiet_environment, run_spec

MARKS = {
    "earlier run": "{runs}:aaaaaaaaaaaa:t:0",
    "earlier start": f"{{runs}}:{RUN}:earlier:1",
    "this run": f"{{runs}}:{RUN}:t:1",
    "other campaign": "{runs}-2:aaaaaaaaaaaa:t:0",
    "below": "{runs}/below:aaaaaaaaaaaa:t:0",
}
Start = Callable[[str, str], Child]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "campaign" / "runs"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def make(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RunNode]]:
    monkeypatch.setenv("SCRATCHDIR", str(tmp_path))
    nodes: list[RunNode] = []

    def node(stop_s: float = 30.0, **changes: object) -> RunNode:
        deadlines = dataclasses.replace(Deadlines(), stop_s=stop_s)
        spec = run_spec(deadlines=deadlines, **changes)
        nodes.append(RunNode(spec, tmp_path / "spec.json", runs, rank=0, token="t"))
        return nodes[-1]

    yield node
    for made in nodes:
        made.stop()
        made.remove()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    children: list[Child] = []

    def child(mark: str, script: str) -> Child:
        env = {**quiet_environment(), CLUSTER_VARIABLE: mark} if mark else quiet_environment()
        children.append(Child(f"child-{len(children)}", ["bash", "-c", script], env, tmp_path))
        return children[-1]

    yield child
    stop_all(children, grace_s=0)


def living(runs: Path) -> list[str]:
    return sorted(mark for mark in marked(CLUSTER_VARIABLE, lambda mark: str(runs) in mark).values())


def test_strays_of_this_campaign_are_ended_and_everything_else_is_left_alone(
    make: Callable[..., RunNode], start: Start, runs: Path
) -> None:
    children = {name: start(mark.format(runs=runs), "trap '' TERM; sleep 600; :") for name, mark in MARKS.items()}
    until(lambda: len(set(living(runs))) == len(MARKS))
    make().ensure_clean()
    ended = {name for name, child in children.items() if child.code is not None}
    until(lambda: children["earlier run"].code is not None and children["earlier start"].code is not None)
    assert ended <= {"earlier run", "earlier start"}
    assert set(living(runs)) == {MARKS[name].format(runs=runs) for name in MARKS if not name.startswith("earlier")}


def test_a_node_where_strays_do_not_go_away_is_not_clean(
    make: Callable[..., RunNode], start: Start, runs: Path
) -> None:
    mark = MARKS["earlier run"].format(runs=runs)
    start("", f"while true; do {CLUSTER_VARIABLE}='{mark}' sleep 600; done")
    until(lambda: living(runs))
    # No time at all: with some, a look could fall between the end of one and the beginning of the next.
    with pytest.raises(NotCleanError, match=r"^node not clean: process \[\d+\] of an earlier run is still running$"):
        make(stop_s=0.0).ensure_clean()


def test_a_clean_node_needs_no_waiting(make: Callable[..., RunNode], start: Start, runs: Path) -> None:
    make(stop_s=-1.0).ensure_clean()


def test_the_processes_of_a_node_carry_the_mark_of_their_run_and_end_with_it(
    make: Callable[..., RunNode], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = runs / "python"
    python.write_text('#!/usr/bin/env bash\n# python node.pyz run --role ROLE\necho "$4"; exec sleep 600\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    node = make(workers_per_node=2)
    for one in (*node.scheduler(), *node.workers()):
        node.start([one])
    node.tell_address("tcp://127.0.0.1:1")
    until(lambda: living(runs) == [f"{runs}:{RUN}:t:0"] * 3)
    assert node.dead() is None
    until(lambda: list(node.logs(whole=False).values()) == ["scheduler", "worker", "worker"])
    assert sorted(node.logs(whole=True)) == [f"rank0/{name}.log" for name in ("scheduler", "worker-0-0", "worker-0-1")]
    node.children[1].signal(9)
    until(lambda: node.dead() is node.children[1])
    node.stop()
    assert living(runs) == []
    node.remove()
    assert not node.scratch.exists()


def test_a_run_that_succeeded_keeps_the_last_lines_of_its_logs_and_a_failed_one_everything(
    make: Callable[..., RunNode],
) -> None:
    node = make()
    (node.scratch / "worker.log").write_text("".join(f"{number}\n" for number in range(1000)))
    assert node.logs(whole=False) == {"rank0/worker.log": "\n".join(str(number) for number in range(950, 1000))}
    assert node.logs(whole=True)["rank0/worker.log"].startswith("0\n1\n")


def test_segments_that_ucx_left_behind_are_removed_and_used_ones_stay(make: Callable[..., RunNode]) -> None:
    left, used, foreign = (
        Path(f"/dev/shm/{name}_gpubench_test_{os.getpid()}") for name in ("ucx_shm_posix_1", "ucx_shm_posix_2", "other")
    )
    try:
        for path in (left, foreign):
            path.write_bytes(b"x" * 4096)
        made = used.with_name(f"making_{used.name}")  # a run beside this test removes what nobody uses yet, too
        made.write_bytes(b"x" * 4096)
        with made.open("r+b") as handle, mmap.mmap(handle.fileno(), 4096):
            made.rename(used)
            assert not {used, foreign} & set(unused_segments())
            make().stop()
        assert [path.exists() for path in (left, used, foreign)] == [False, True, True]
    finally:
        for path in (left, used, foreign, used.with_name(f"making_{used.name}")):
            path.unlink(missing_ok=True)


def test_processes_of_another_living_job_of_the_campaign_are_left_alone(
    make: Callable[..., RunNode], runs: Path, tmp_path: Path
) -> None:
    mark = MARKS["earlier run"].format(runs=runs)
    (tmp_path / "other").mkdir()
    supervisor = tmp_path / "other" / "node.pyz"
    supervisor.write_text(
        "import subprocess, sys\n"
        f"env = {{{CLUSTER_VARIABLE!r}: {mark!r}}}\n"
        "subprocess.run([sys.executable, '-c', 'input()'], env=env, check=False)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(supervisor), "run"],
        env=quiet_environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        until(lambda: living(runs))
        (child,) = marked(CLUSTER_VARIABLE, mark.__eq__)
        assert supervisor_of(child) == process.pid
        with pytest.raises(
            NotCleanError, match=rf"another job of this campaign \(its supervisor is process {process.pid}\)"
        ):
            make(stop_s=0.3).ensure_clean()
        assert living(runs)
    assert not living(runs)


def test_scratch_directories_of_dead_supervisors_go_and_those_of_living_ones_and_of_other_machines_stay(
    make: Callable[..., RunNode], tmp_path: Path
) -> None:
    code = (
        "import os, sys; from pathlib import Path; from gpubench.node import scratch; "
        "path, _ = scratch.make(Path(sys.argv[1]), 'x-0'); (path / 'data').mkdir(); print(path, flush=True); os.abort()"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True, check=False)
    dead = Path(done.stdout.strip())
    elsewhere, unlike = tmp_path / "gpubench-far-0-abcdefgh", tmp_path / "gpubench-mine"
    for other in (elsewhere, unlike):
        other.mkdir()
    (elsewhere / ".held").write_text("another kernel\nhost another\n")
    crashed = tmp_path / "gpubench-crashed-0-abcdefgh"  # of this host before its last boot
    crashed.mkdir()
    (crashed / ".held").write_text(f"another kernel\nhost {socket.gethostname()}\n")
    trap = tmp_path / "gpubench-trap-0-abcdefgh"  # of somebody who wants us to wait for ever
    trap.mkdir()
    os.mkfifo(trap / ".held")
    beside, node = make(), make()
    assert dead.exists()
    node.ensure_clean()
    assert not dead.exists()
    assert not crashed.exists()
    assert all(one.exists() for one in (elsewhere, unlike, trap, beside.scratch, node.scratch))
