"""Processor seconds, joules and throttling: real processes, trees of files as Linux has them, a stand-in of NVML."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.workloads import counters, families
from gpubench.node.workloads.base import Answer, Measurement, WorkloadContext
from gpubench.node.workloads.counters import Cost, Counters, HostCounters, cost, of_run
from tests.conftest import ROOT
from tests.node.specs_by_hand import quiet_environment
from tests.workloads.running import complete, run

WORK = """
import sys, time
for line in sys.stdin:
    end = time.process_time() + float(line)
    while time.process_time() < end:
        pass
    print(time.process_time(), flush=True)
"""
MARK = "somewhere/runs:abc:token:"

Working = Callable[[float], float]


@pytest.fixture
def process() -> Iterator[tuple[int, Working]]:
    """A process that works for as many processor seconds as it is told, and says how many it has used in all."""
    with subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdin
        assert started.stdout
        stdin, stdout = started.stdin, started.stdout

        def work(seconds: float) -> float:
            stdin.write(f"{seconds}\n")
            stdin.flush()
            return float(stdout.readline())

        yield started.pid, work
        stdin.close()


def test_another_process_s_seconds_are_read_as_it_knows_them_itself(process: tuple[int, Working]) -> None:
    pid, work = process
    host = HostCounters([pid])
    first, before = work(0.02), host.read()["cpu_s"]
    second, after = work(0.05), host.read()["cpu_s"]
    assert first <= before < after
    assert after - before == pytest.approx(second - first, abs=0.005)  # what it takes to write a line


def test_a_process_that_has_ended_makes_the_seconds_unknown() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        host = HostCounters([os.getpid(), started.pid])
        assert host.read()["cpu_s"] > 0
        started.communicate(b"\n")
    assert host.read()["cpu_s"] is None
    assert HostCounters([started.pid]).read()["cpu_s"] is None
    assert HostCounters([]).read()["cpu_s"] is None


def printed(code: str, **env: str) -> str:
    """What a Python prints that has these variables."""
    environment = quiet_environment(PYTHONPATH=str(ROOT), **env)
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
    ).stdout


HERE = "from gpubench.node.workloads.counters import read_here; print(read_here()['cpu_s'])"


def test_all_processes_of_a_run_on_this_host_count_and_no_others(process: tuple[int, Working]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORK],
        env=quiet_environment(GPUBENCH_CLUSTER=f"{MARK}1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other_rank:
        assert other_rank.stdin
        assert other_rank.stdout
        other_rank.stdin.write("3\n")
        other_rank.stdin.flush()
        other_rank.stdout.readline()
        assert float(printed(HERE, GPUBENCH_CLUSTER=f"{MARK}0")) > 3
        assert float(printed(HERE, GPUBENCH_CLUSTER="somewhere/runs:other:token:0")) < 3
        other_rank.stdin.close()
    assert printed(HERE) == "None\n"


def zone(root: Path, name: str, package: str, microjoules: int, most: int = 1_000_000_000) -> Path:
    folder = root / name
    folder.mkdir()
    for file, value in (("name", package), ("energy_uj", microjoules), ("max_energy_range_uj", most)):
        (folder / file).write_text(f"{value}\n")
    return folder


def test_joules_are_those_of_whole_packages_once_and_a_counter_may_begin_anew(tmp_path: Path) -> None:
    first, second = (
        zone(tmp_path, "intel-rapl:0", "package-0", 999_000_000),
        zone(tmp_path, "intel-rapl:1", "package-1", 5),
    )
    zone(tmp_path, "intel-rapl:0:0", "core", 7)
    zone(tmp_path, "intel-rapl:2", "psys", 7)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 7)
    host = HostCounters([os.getpid()], tmp_path)
    before = {"n": host.read()}
    (first / "energy_uj").write_text("2000000\n")
    (second / "energy_uj").write_text("500005\n")
    used = cost(before, {"n": host.read()})
    assert used.energy_j == pytest.approx(3.0 + 0.5)
    assert used.energy_of == ("n/package-0", "n/package-1")
    assert used.throttle is None


def test_what_only_one_reading_has_is_unknown(tmp_path: Path) -> None:
    folder = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    host = HostCounters([os.getpid()], tmp_path)
    before = {"n": host.read()}
    (folder / "energy_uj").unlink()
    assert cost(before, {"n": host.read()}).energy_j is None
    assert cost(before, {"n": host.read()}).energy_of == ()
    nothing = HostCounters([os.getpid()], tmp_path / "none").read()
    assert cost({"n": nothing}, {"n": nothing}).energy_j is None


READ = """
import json, os
from gpubench.node.workloads.counters import HostCounters
host = HostCounters([os.getpid()])
print(json.dumps([{**host.read(), "cpu_s": None} for _ in range(2)]))
"""


@pytest.mark.parametrize(
    ("more", "joules", "throttle"),
    [
        ({}, {"gpu-0": [12.5, 13.5], "gpu-1": [112.5, 113.5]}, 4 | 64),
        ({"STAND_IN_NVML_ENERGY": "3"}, {}, 4 | 64),
        ({"STAND_IN_NVML_THROTTLE": "3"}, {"gpu-0": [12.5, 13.5], "gpu-1": [112.5, 113.5]}, None),
        ({"STAND_IN_NVML_INIT": "9"}, {}, None),
        ({"STAND_IN_GPUS": "0"}, {}, None),
    ],
)
def test_gpus_say_their_joules_and_why_they_are_slow(
    nvml: Path, more: dict[str, str], joules: dict[str, list[float]], throttle: int | None
) -> None:
    readings = json.loads(printed(READ, LD_LIBRARY_PATH=str(nvml), **more))
    gpus = [{name: one[0] for name, one in reading["joules"].items() if "gpu" in name} for reading in readings]
    assert gpus == [{name: values[at] for name, values in joules.items()} for at in range(2)]
    assert [reading["throttle"] for reading in readings] == [throttle, throttle]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"STAND_IN_GPUS": "3"}, ["2 x Stand-in GPU A, 1 x Stand-in GPU B", "550.54.15"]),
        ({"STAND_IN_NVML_NAME": "3"}, ["2 x unknown", "550.54.15"]),
        ({"STAND_IN_GPUS": "0"}, ["", ""]),
        ({"STAND_IN_NVML_INIT": "9"}, ["", ""]),
    ],
)
def test_a_node_says_which_gpus_and_which_driver_it_has(nvml: Path, more: dict[str, str], said: list[str]) -> None:
    code = "import json; from gpubench.node.run_node import facts; print(json.dumps(facts()))"
    found = json.loads(printed(code, LD_LIBRARY_PATH=str(nvml), **more))
    assert [found["gpu_model"], found["gpu_driver"]] == said


def test_costs_of_several_hosts_are_added_and_reasons_put_together() -> None:
    def reading(cpu_s: float | None, joules: float, throttle: int | None) -> dict[str, Any]:
        return {"cpu_s": cpu_s, "joules": {"gpu-0": (joules, 0.0)}, "throttle": throttle}

    before = {"a": reading(1.0, 10.0, 1), "b": reading(2.0, 20.0, None)}
    after = {"a": reading(1.5, 11.0, 1), "b": reading(2.25, 22.0, 8)}
    assert cost(before, after) == Cost(0.75, 3.0, 9, ("a/gpu-0", "b/gpu-0"))
    assert cost(before, {**after, "b": reading(None, 22.0, 8)}).cpu_s is None


def test_a_scheduler_on_a_host_that_nobody_reads_leaves_no_counters() -> None:
    scheduler = {"role": "scheduler", "host": "c", "address": "tcp://c:1"}
    workers = [{"role": "worker", "host": host, "address": f"tcp://{host}:{n}"} for n, host in enumerate("aabb")]
    client = {"role": "client", "host": "a"}
    assert of_run(None, "a", [scheduler, *workers, client]) is None
    assert of_run(None, "a", [{**scheduler, "host": "b"}, *workers, client]) is not None


class Noting(Counters):
    """Notes what happens when."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(None, "here", {})
        self.notes = notes

    def before(self) -> dict[str, counters.Reading]:
        self.notes.append("before")
        return super().before()

    def since(self, before: Any) -> Cost:
        self.notes.append("since")
        return dataclasses.replace(super().since(before), cpu_s=1.5)


class Slow(Measurement):
    """Notes its clock's ends."""

    nominal_bytes = least_moved_bytes = 0
    uses_transfer_log = False

    def prepare(self) -> None:
        self.params["notes"].append("prepare")

    def setup(self) -> None: ...

    teardown = setup

    def once(self) -> tuple[float, str]:
        self.params["notes"].append("clock")
        begun = time.perf_counter()
        return time.perf_counter() - begun, ""

    def check(self, _answer: Any) -> Answer:
        self.params["notes"].append("check")
        return Answer("ok", {})


@pytest.mark.integration
def test_counters_are_read_just_before_and_just_after_the_clock(cluster: WorkloadContext) -> None:
    notes: list[str] = []
    context = dataclasses.replace(cluster, counters=Noting(notes))
    _, lines = run(Slow(context, {"notes": notes}), reps=1, warmup=1)
    assert notes == ["prepare", "before", "clock", "since", "check"] * 2
    assert [line["cpu_s"] for line in lines] == [1.5, 1.5]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("params", "has"), [({"count": 5}, True), ({"count": 5, "mode": "exponential", "target": 0.01}, False)]
)
def test_work_whose_amount_follows_from_its_speed_has_no_cost(
    cluster: WorkloadContext, params: dict[str, Any], has: bool
) -> None:
    notes: list[str] = []
    context = dataclasses.replace(cluster, counters=Noting(notes))
    _, lines = run(families.create("tasks", context, "dask", complete("tasks", params)), reps=1, warmup=0)
    assert [line["cpu_s"] is not None for line in lines] == [has]
    assert bool(notes) == has
