"""Every line that is about GPUs runs: dask-cuda is real, NVML a stand-in, ``cupy`` is numpy and ``cudf`` is pandas.

All such lines stand in three files. That they fit the libraries that are stand-ins this can't show.
"""

import dis
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gpubench
from gpubench.node.spec import Deadlines, WorkloadSpec
from gpubench.node.workloads.catalogue import CATALOGUE
from tests.gpu.stacks import GpuStack, obtain
from tests.node.runners import Runner
from tests.node.specs_by_hand import node_half, quiet_environment

STAND_INS = Path(__file__).parents[1] / "stand_ins" / "gpu"
PACKAGE = Path(gpubench.__file__).parent
FILES = tuple(f"gpubench/node/{name}.py" for name in ("workloads/device", "workloads/nvml", "gpu", "gpu_worker"))
SMALLER = 2e-2
POOL = 1 << 30

Environment = Callable[..., dict[str, str]]


def smallest(name: str) -> dict[str, Any]:
    """The catalogue's defaults, a fiftieth as large."""
    workload = CATALOGUE[name]
    grows = dict(workload.grows)
    found = {
        key: max(1, int(param.default * SMALLER ** grows[key])) if key in grows else param.default
        for key, param in workload.params.items()
    }
    if "scale" in found:  # tables of a gigabyte
        found["scale"] = 0.01
    if "second_size" in found:  # of columns that don't grow: svd wants no more of them than rows
        found["second_size"] = min(found["second_size"], found["size"])
    return found


def specs() -> list[WorkloadSpec]:
    return [
        WorkloadSpec(name, backend, smallest(name), reps=1, warmup=0, timeout_s=120.0)
        for name, known in CATALOGUE.items()
        for backend in known.backends
        if "gpu" in known.devices and backend != "parsl"  # its workers are processes of its own, without a GPU
    ]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, nvml: Path) -> Environment:
    """Variables of a process that finds the stand-ins, and tells its lines to a directory of the module."""
    lines = tmp_path_factory.mktemp("lines")

    def variables(**more: str) -> dict[str, str]:
        found = {"PYTHONPATH": str(STAND_INS), "LD_LIBRARY_PATH": str(nvml)}
        return found | {"STAND_IN_LINES": str(lines), "STAND_IN_LINES_OF": ":".join(FILES)} | more

    return variables


@pytest.fixture(scope="module")
def stack(python39: str) -> GpuStack:
    """With dask-cuda 25.8, whose explicit-comms the catalogue has."""
    return obtain("ucxx-0.45.1", python39)


def lines_of(code: types.CodeType) -> Iterator[int]:
    """Numbers of the lines that the interpreter would report, functions included."""
    yield from (line for _, line in dis.findlinestarts(code) if line)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from lines_of(inner)


def executable(path: Path) -> set[int]:
    """All lines that can run, less those that only open a function's body and docstrings."""
    code = compile(path.read_text(), str(path), "exec")
    heads = {inner.co_firstlineno for inner in code.co_consts if isinstance(inner, types.CodeType)}
    return {line for line in lines_of(code) if line not in heads}


def ask(environment: dict[str, str], code: str, python: str = sys.executable) -> str:
    """What a Python with these variables prints."""
    done = subprocess.run(
        [python, "-c", code],
        env=quiet_environment(**environment | {"PYTHONPATH": f"{environment['PYTHONPATH']}:{PACKAGE.parent}"}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CPU = """
import pandas
from gpubench.node.workloads import device
frame = pandas.DataFrame({{"a": [1, 2]}})
frame.to_parquet("{folder}/t.parquet")
device.array_module("cpu"), device.frame_module("cpu"), device.host("cpu", [1.0])
device.read_parquet(["{folder}/t.parquet"], "cpu")
"""
WITHOUT = """
from gpubench.node import gpu_worker
try:
    gpu_worker.cuda_worker()
except SystemExit as error:
    assert str(error).startswith("no GPU answers to NVML here")
else:
    raise AssertionError
"""
OLD_OPTIONS = """
from gpubench.node import gpu_worker
gpu_worker.cuda_worker()(["--death-timeout", "60", "--help"])
"""
NEAR = """
import os
from gpubench.node.workloads import nvml
cases = {cases}
for name, value, device in cases:
    os.environ[name] = value
    print(*nvml.cpus_near(device))
    del os.environ[name]
"""
ONE, SECOND = ("STAND_IN_NODE", "mig"), "000000000001"
NEAR_CASES = [
    (*ONE, "0", "[0]"),
    (*ONE, "1", "[1]"),
    (*ONE, f"GPU-00000000-0000-0000-0000-{SECOND}", "[1]"),
    (*ONE, f"MIG-00000000-0000-0000-0001-{SECOND}", "[1]"),
    (*ONE, f"MIG-00000000-0000-0000-0007-{SECOND}", "[] error 6"),
    (*ONE, "GPU-1", "[] error 6"),
    (*ONE, "9", "[] error 2"),
    ("STAND_IN_NVML_AFFINITY", "3", "0", "[] error 3"),
    ("STAND_IN_NVML_INIT", "9", "0", "[] error 9"),
]
"""A variable, the word of a GPU, and what is said: CPUs, and why not."""
WIDE = """
import os
os.sysconf = lambda name: 80
from gpubench.node.workloads import nvml
print(*nvml.cpus_near("1"))
"""
ALLOCATING = """
import importlib.util, sys, types
from gpubench.node.workloads import device
device.keep_memory_resource()
device.allocate_arrays_by_rmm()
device.restore_memory_resource()
print(device.memory_pool("gpu")["arrays"])
sys.modules["rmm"].rmm_cupy_allocator = sys.modules["rmm.allocators.cupy"].rmm_cupy_allocator
sys.modules["rmm.allocators.cupy"] = None  # as in RMM before 23.02
device.allocate_arrays_by_rmm()
there = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "cupy" else there(name)
device.allocate_arrays_by_rmm()
print(device.memory_pool("gpu")["arrays"])
"""
USED = """
from gpubench.node import gpu
from gpubench.node.workloads import nvml
gpu.FREE_S = 0
gpu.in_use("0,1,GPU-1"), gpu.chosen(1, {})
for count, shown in ((1, ""), (1, "0"), (1, "GPU-1"), (1, "7")):
    gpu.lacking(count, {"CUDA_VISIBLE_DEVICES": shown})
nvml.limits(), nvml.own(), nvml.devices()
"""
CHOSEN = "import os; from gpubench.node import gpu; print(gpu.chosen({workers}, os.environ).get(gpu.VISIBLE, ''))"
COUNT = "from gpubench.node import gpu; print(gpu.nvml.count(), gpu.resolve('auto'), gpu.resolve('cpu'))"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "2 gpu cpu"),
        ({"PYTHONPATH": ""}, "2 cpu cpu"),  # this Python has no cupy
        ({"STAND_IN_GPUS": "0"}, "0 cpu cpu"),
        ({"STAND_IN_NVML_INIT": "9"}, "0 cpu cpu"),
        ({"LD_LIBRARY_PATH": ""}, "0 cpu cpu"),
    ],
)
def test_a_gpu_is_there_when_nvml_counts_one(environment: Environment, more: dict[str, str], said: str) -> None:
    assert ask(environment(**more), COUNT) == said


@pytest.mark.parametrize(
    ("workers", "allotted", "shown"),
    [
        (1, "", "0"),
        (2, "", "0,1"),
        (3, "", "0,1,2"),
        (4, "", "0,1,2"),
        (1, "2", "2"),
        (1, "1,2", "1"),
        (2, "1", "1"),
        (1, "NoDevFiles", ""),
        (2, "0,-1,2", "0"),
    ],
)
def test_of_more_gpus_than_workers_the_first_of_those_that_the_job_was_given_are_shown(
    environment: Environment, workers: int, allotted: str, shown: str
) -> None:
    variables = environment(STAND_IN_GPUS="3", **({"CUDA_VISIBLE_DEVICES": allotted} if allotted else {}))
    assert ask(variables, CHOSEN.format(workers=workers)) == shown


def near(environment: Environment) -> list[str]:
    lines = ask(environment(), NEAR.format(cases=[case[:3] for case in NEAR_CASES])).splitlines()
    return [line.rstrip() for line in lines]


def test_the_cpus_near_a_gpu_are_found_by_index_and_uuid_or_it_is_said_why_not(environment: Environment) -> None:
    assert near(environment) == [said for _, _, _, said in NEAR_CASES]
    missing = "[] libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
    assert ask(environment(LD_LIBRARY_PATH=""), NEAR.format(cases=[("A", "", "0")])) == missing


def test_cpus_beyond_the_64th_are_near_a_gpu_too(environment: Environment) -> None:
    assert ask(environment(STAND_IN_NODE="mig", STAND_IN_CPUS="5,70"), WIDE) == "[70]"


BOUND = """
import multiprocessing, os
from gpubench.node import preload_gpu_worker
step = os.sched_getaffinity(0)
from importlib import reload
multiprocessing.parent_process = lambda: "a nanny"
reload(preload_gpu_worker)
print(len(step), *sorted(os.sched_getaffinity(0)))
"""


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, "second"),
        ({"CUDA_VISIBLE_DEVICES": f"GPU-00000000-0000-0000-0000-{SECOND}"}, "second"),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, "first"),
        ({"STAND_IN_NVML_AFFINITY": "3"}, "all"),
    ],
)
def test_a_gpu_worker_is_bound_to_the_cpus_near_its_gpu_before_anything_starts_a_thread(
    environment: Environment, more: dict[str, str], bound: str
) -> None:
    own = sorted(os.sched_getaffinity(0))
    expected = {"first": own[:1], "second": own[1:2], "all": own}[bound]
    variables = environment(STAND_IN_NODE="mig", STAND_IN_CPUS=",".join(map(str, own[:2])), **more)
    assert ask(variables, BOUND) == " ".join(map(str, [len(own), *expected]))


OWN = """
from gpubench.campaign.own_gpus import require_own_gpus
from gpubench.resources.profiles import load_site
from gpubench.errors import UsageError
site = load_site("local-gpu")
require_own_gpus(site, 2)
require_own_gpus(load_site("local"), 3)  # on CPUs
require_own_gpus(load_site("draco"), 8)  # another machine's
try:
    require_own_gpus(site, 3)
except UsageError as error:
    print(error)
"""


def test_more_gpu_workers_than_this_machine_has_gpus_are_refused(environment: Environment) -> None:
    assert ask(environment(), OWN) == "site local-gpu: 3 workers on GPUs, NVML knows 2; --workers 2"


@pytest.mark.system
def test_a_run_on_one_of_two_gpus_has_one_worker(environment: Environment, stack: GpuStack, tmp_path: Path) -> None:
    variables = environment()
    names = ("merge", "transpose-sum", "strided-sum")
    runner = Runner(
        [stack.python],
        tmp_path,
        node_half=node_half(),
        env=variables,
        device="gpu",
        workers_per_node=1,
        workloads=[WorkloadSpec(name, "dask", smallest(name), reps=1, warmup=0, timeout_s=120.0) for name in names],
        deadlines=Deadlines(start_s=120.0, stop_s=20.0, silence_s=30.0),
    )
    runner.run("--rank", "0", **variables)
    record = runner.record()
    assert (record.status, record.reason) == ("ok", "")
    assert [(item.workload, item.status) for item in record.workloads] == [(name, "ok") for name in names]


@pytest.mark.long
@pytest.mark.system
def test_every_workload_runs_on_gpu_workers_and_every_line_about_gpus_is_executed(
    environment: Environment, stack: GpuStack, python39: str, tmp_path: Path
) -> None:
    variables = environment()
    runner = Runner(
        [stack.python],
        tmp_path,
        node_half=node_half(),
        env=variables,
        device="auto",
        workers_per_node=2,
        rmm_pool=str(POOL),
        workloads=specs(),
        deadlines=Deadlines(start_s=120.0, stop_s=20.0, silence_s=30.0),
    )
    runner.start("--rank", "0", **variables).communicate(timeout=500)
    record = runner.record()
    assert (record.status, record.reason, record.device) == ("ok", "", "gpu")
    failed = {item.workload: item.reason for item in record.workloads if item.status == "failed"}
    assert failed == {}
    assert {item.workload for item in record.workloads if item.status == "ok"} >= {"merge", "transpose-sum", "message"}
    workers = [one for one in runner.provenance()["processes"] if one["role"] == "worker"]
    pool = {"resources": ["PoolMemoryResource", "CudaMemoryResource"], "pool_bytes": POOL, "arrays": "rmm"}
    assert [one["memory_pool"] for one in workers] == [pool, pool]

    for more in ({}, {"STAND_IN_NVML_INIT": "9"}, {"LD_LIBRARY_PATH": ""}):
        ask(environment(**more), COUNT)
    ask(environment(STAND_IN_GPUS="3", CUDA_VISIBLE_DEVICES="2"), CHOSEN.format(workers=1))
    ask(variables, "from gpubench.node import gpu_worker; gpu_worker.worker_options('cpu', 'default')")
    ask(environment(STAND_IN_GPUS="0"), WITHOUT, stack.python)
    ask(variables, OLD_OPTIONS, obtain("ucx-py-0.29", python39).python)
    near(environment)
    ask(environment(LD_LIBRARY_PATH=""), NEAR.format(cases=[("A", "", "0")]))
    for more in ({}, {"STAND_IN_NVML_INIT": "9"}, {"LD_LIBRARY_PATH": ""}):
        ask(environment(**more), "from gpubench.node.workloads import counters; counters.HostCounters([]).read()")
    ask(variables, CPU.format(folder=tmp_path))
    ask(variables, "from gpubench.node.workloads import device; print(device.memory_pool('cpu'))")
    ask(variables, "from gpubench.node.workloads import nvml; assert nvml.on_bus('GPU-of-nobody') == ''")
    ask(variables, ALLOCATING)
    for more in (
        {},
        {"STAND_IN_NVML_INIT": "9"},
        {"STAND_IN_NVML_COUNT": "9"},
        {"STAND_IN_NVML_MODE": "3"},
        {"STAND_IN_NVML_USED": "9"},
    ):
        ask(environment(**more), USED)
    seen = {line for path in Path(variables["STAND_IN_LINES"]).iterdir() for line in path.read_text().split()}
    for name in FILES:
        missed = {line for line in executable(PACKAGE.parent / name) if f"{name}:{line}" not in seen}
        assert missed == set(), name
