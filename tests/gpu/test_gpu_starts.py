"""Real ``dask cuda worker`` of every stack, on nodes of GPUs that only NVML's stand-in knows.

What this shows: which GPU each worker has, on which CPUs it runs, and what a run says of it. With two CPUs there are
three sets of CPUs, so among four GPUs two have the same (``four-domains``); eight GPUs are near one CPU or the other,
as on two sockets. What it can't show: anything that a worker does on a GPU.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.spec import Deadlines
from tests.conftest import need
from tests.gpu.stacks import IMAGES, STACKS, obtain
from tests.node.runners import Runner
from tests.node.specs_by_hand import node_half

TWO_SOCKETS = {1: [0], 2: [0, 1], 8: [0, 0, 0, 0, 1, 1, 1, 1]}
"""By number of GPUs: for each the place, among the two CPUs, of the one near it."""

Start = Callable[..., "tuple[Any, list[dict[str, Any]]]"]


@pytest.fixture
def start(nvml: Path, python39: str, tmp_path: Path) -> Start:
    """A run of one small workload on the GPUs of a node: its record, and what its workers said of themselves."""
    need(len(os.sched_getaffinity(0)) > 1, "two CPUs, to tell the workers of one GPU from those of another")

    def run(stack: str, gpus: int, protocol: str, *, node: str = "two-sockets", **changes: Any) -> Any:
        found = obtain(stack, python39)
        more = {"STAND_IN_NODE": node, "STAND_IN_GPUS": str(gpus), **changes.pop("variables", {})}
        variables = found.variables(nvml, protocol, **more)
        runner = Runner(
            [found.python],
            tmp_path,
            **{
                "node_half": node_half(),
                "env": variables,
                "protocol": protocol,
                "expect_ucx": found.ucx or "1.14.1",
                "device": "gpu",
                "workers_per_node": gpus,
                "memory_limit": 2**29,
                "deadlines": Deadlines(start_s=120.0, stop_s=20.0, silence_s=30.0),
                **changes,
            },
        )
        # The supervisor, too, finds NVML: it counts the GPUs of the node.
        runner.run("--rank", "0", LD_LIBRARY_PATH=variables["LD_LIBRARY_PATH"], **more)
        provenance = json.loads((runner.run_dir() / "provenance.json").read_text())
        return runner.record(), [one for one in provenance["processes"] if one["role"] == "worker"]

    return run


def places(workers: list[dict[str, Any]]) -> list[tuple[str, str, list[int]]]:
    """Name, GPU, and the places of the worker's CPUs among the two, sorted by name."""
    two = sorted(os.sched_getaffinity(0))[:2]
    return sorted(
        (one["name"], one["gpu"]["device"], [two.index(cpu) for cpu in one["affinity"] if cpu in two])
        for one in workers
    )


def on_own(gpus: int, near: list[list[int]]) -> list[tuple[str, str, list[int]]]:
    """What ``places`` says where each worker has its own GPU and the CPUs near it."""
    names = ["worker-0-0"] if gpus == 1 else [f"worker-0-0-{index}" for index in range(gpus)]
    return [(name, str(index), near[index]) for index, name in enumerate(names)]


@pytest.mark.system
@pytest.mark.parametrize(
    ("stack", "gpus", "protocol"),
    [*((stack, 8, "tcp") for stack in STACKS), ("ucxx-0.45.1", 1, "tcp"), ("ucxx-0.45.1", 2, "ucx")],
)
def test_every_gpu_worker_has_its_own_gpu_and_the_cpus_near_it(
    start: Start, stack: str, gpus: int, protocol: str
) -> None:
    record, workers = start(stack, gpus, protocol)
    assert (record.status, record.reason) == ("ok", "")
    assert places(workers) == on_own(gpus, [[cpu] for cpu in TWO_SOCKETS[gpus]])
    assert [one["ucx"]["loaded"] for one in workers] == ["1.19.0" if protocol == "ucx" else "none"] * gpus
    assert not [line for line in record.warnings if "GPU" in line]


MATRIX = [
    (stack, gpus, protocol)
    for stack, gpus, protocol in itertools.product(STACKS, (1, 2, 4, 8), ("tcp", "ucx"))
    if protocol == "tcp" or stack in IMAGES
]


@pytest.mark.long
@pytest.mark.parametrize(("stack", "gpus", "protocol"), MATRIX)
def test_so_it_is_with_every_stack_number_of_gpus_and_protocol(
    start: Start, stack: str, gpus: int, protocol: str
) -> None:
    node = "four-domains" if gpus == 4 else "two-sockets"
    near = [[0], [1], [0, 1], [1]] if gpus == 4 else [[cpu] for cpu in TWO_SOCKETS[gpus]]
    record, workers = start(stack, gpus, protocol, node=node)
    assert (record.status, record.reason) == ("ok", "")
    assert places(workers) == on_own(gpus, near)
