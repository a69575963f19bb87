"""Real ``dask cuda worker`` of every stack, on nodes of GPUs that only NVML's stand-in knows.

What this shows: which GPU each worker has, on which CPUs it runs, and what a run says of it. With two CPUs there are
three sets of CPUs, so among four GPUs two have the same (``four-domains``); eight GPUs are near one CPU or the other,
as on two sockets. What it can't show: anything that a worker does on a GPU.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import itertools
import json
import os
import re
import signal
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.node.spec import Deadlines, WorkloadSpec
from gpubench.node.spec.near_gpu import cpu_list
from gpubench.node.spec.records import LOGS_FILE
from tests.conftest import ROOT, in_long_tests, need
from tests.gpu.stacks import IMAGES, STACKS, STAND_INS, obtain
from tests.node.runners import Runner, until
from tests.node.specs_by_hand import node_half, quiet_environment
from tests.workloads.running import complete

TWO_SOCKETS = {1: [0], 2: [0, 1], 8: [0, 0, 0, 0, 1, 1, 1, 1]}
"""By number of GPUs: for each the place, among the two CPUs, of the one near it."""

POOL = 1 << 30
Start = Callable[..., "tuple[Any, list[dict[str, Any]]]"]


@pytest.fixture
def start(nvml: Path, python39: str, tmp_path: Path) -> Iterator[Start]:
    """A run of one small workload on the GPUs of a node: its record, and what its processes said of themselves.

    ``variables`` are further ones of its processes, ``supervisor`` of its supervisor, ``apart`` those of the supervisor
    of a scheduler that is elsewhere.
    """
    need(len(os.sched_getaffinity(0)) > 1, "two CPUs, to tell the workers of one GPU from those of another")
    runners: list[Runner] = []

    def run(stack: str, gpus: int, protocol: str, *, node: str = "two-sockets", **changes: Any) -> Any:
        found = obtain(stack, python39)
        more = {"STAND_IN_NODE": node, "STAND_IN_GPUS": str(gpus)}
        variables = found.variables(nvml, protocol, {**more, **changes.pop("variables", {})})
        apart: dict[str, str] | None = changes.pop("apart", None)
        changes_of_supervisor: dict[str, str] = changes.pop("supervisor", {})
        runner = Runner(
            [found.python],
            tmp_path,
            **{
                "node_half": node_half(),
                "env": variables,
                "protocol": protocol,
                "expect_ucx": found.ucx,
                "device": "gpu",
                "workers_per_node": gpus,
                "memory_limit": 2**29,
                "deadlines": Deadlines(start_s=300.0, stop_s=20.0, silence_s=60.0),
                **changes,
            },
        )
        runners.append(runner)
        more.update(changes_of_supervisor)
        # The supervisor, too, finds NVML: it counts the GPUs of the node.
        more["LD_LIBRARY_PATH"] = variables["LD_LIBRARY_PATH"]
        if apart is not None:
            runner.start("--role", "scheduler", **more, **apart)
        runner.run("--rank", "0", **more)
        provenance = json.loads((runner.run_dir() / "provenance.json").read_text())
        record = runner.record()
        if record.status != "ok":  # for a test that didn't mean it to fail: pytest shows it then
            with zipfile.ZipFile(runner.run_dir() / LOGS_FILE) as logs:
                for name in logs.namelist():
                    print(f"== {name}", logs.read(name).decode(errors="replace"), sep="\n")
        return record, provenance["processes"]

    yield run
    for process in [process for runner in runners for process in runner.processes]:
        process.kill()
        process.communicate()


def of_workers(processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in processes if one["role"] == "worker"]


def places(processes: list[dict[str, Any]]) -> list[tuple[str, str, list[int]]]:
    """Name, GPU, and the places of the worker's CPUs among the two, of each worker; sorted by name."""
    two = sorted(os.sched_getaffinity(0))[:2]
    return sorted(
        (one["name"], one["gpu"]["device"], [two.index(cpu) for cpu in one["affinity"] if cpu in two])
        for one in of_workers(processes)
    )


def on_own(gpus: int, near: list[list[int]]) -> list[tuple[str, str, list[int]]]:
    """What ``places`` says where each worker has its own GPU and the CPUs near it."""
    names = ["worker-0-0"] if gpus == 1 else [f"worker-0-0-{index}" for index in range(gpus)]
    return [(name, str(index), near[index]) for index, name in enumerate(names)]


SMOKE = {("ucx-py-0.29", 2, "tcp"), ("ucxx-0.45.1", 2, "ucx")}
"""Before every push: the oldest stack, and one over UCX."""
MATRIX = [
    pytest.param(*row, marks=() if row in SMOKE else pytest.mark.long)
    for row in itertools.product(STACKS, (1, 2, 4, 8), ("tcp", "ucx"))
    if row[2] == "tcp" or row[0] in IMAGES
]

OLDEST_AND_NEWEST = ["ucx-py-0.29", "ucxx-0.52.0", *in_long_tests("ucx-py-0.35", "ucxx-0.45.1")]
assert len(OLDEST_AND_NEWEST) == len(STACKS)


@pytest.mark.system
@pytest.mark.parametrize(("stack", "gpus", "protocol"), MATRIX)
def test_every_gpu_worker_has_its_own_gpu_and_the_cpus_near_it(
    start: Start, stack: str, gpus: int, protocol: str
) -> None:
    node = "four-domains" if gpus == 4 else "two-sockets"
    near = [[0], [1], [0, 1], [1]] if gpus == 4 else [[cpu] for cpu in TWO_SOCKETS[gpus]]
    record, processes = start(stack, gpus, protocol, node=node, rmm_pool=str(POOL))
    assert (record.status, record.reason) == ("ok", "")
    assert places(processes) == on_own(gpus, near)
    pools = [one["memory_pool"] for one in of_workers(processes)]
    assert [(pool["pool_bytes"], pool["arrays"]) for pool in pools] == [(POOL, "rmm")] * gpus
    loaded = IMAGES[stack].partition(",")[0] if protocol == "ucx" else "none"
    assert {one["ucx"]["loaded"] for one in processes} == {loaded}
    assert not [line for line in record.warnings if "GPU" in line]
    # What the binding has set in the parent of a worker before, the worker was not given.
    given = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"} if protocol == "ucx" else {}
    assert [one["ucx"]["env_at_start"] for one in processes] == [given] * len(processes)
    if protocol == "ucx":
        assert {one["ucx"]["env"]["UCX_MEMTYPE_CACHE"] for one in processes} == {"n"}


MADE = """
import json, os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from dask_cuda import cuda_worker
from gpubench.node import gpu_worker
gpu_worker.cuda_worker()
made = []
cuda_worker.Nanny = lambda *words, **options: made.append(options)
cuda_worker.CUDAWorker("tcp://127.0.0.1:1", device_memory_limit=0.5, memory_limit=1000)
for one in made:
    cpus = [sorted(plugin.cores) for plugin in one["plugins"] if hasattr(plugin, "cores")]
    print(json.dumps([one["env"]["CUDA_VISIBLE_DEVICES"][0], one["data"][1]["device_memory_limit"], *cpus]))
"""


@pytest.mark.system
@pytest.mark.parametrize("stack", OLDEST_AND_NEWEST)
def test_every_gpu_worker_is_given_the_memory_limit_of_its_own_gpu_and_no_cpu_beyond_the_step(
    nvml: Path, python39: str, stack: str
) -> None:
    """The step has one CPU here; where it has none near a GPU, the worker has all of the step's."""
    found = obtain(stack, python39)
    variables = found.variables(nvml, "tcp", {"STAND_IN_NODE": "two-sockets"})
    variables["PYTHONPATH"] += f":{ROOT}"
    words = [found.python, "-c", MADE]
    done = subprocess.run(
        words, env=quiet_environment(**variables), capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    of_step = [min(os.sched_getaffinity(0))]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [str(gpu), (40 - gpu) * 5 * 10**8, of_step] for gpu in range(8)
    ]


CALLED = """
import functools, os, tempfile
from distributed import Client, LocalCluster
from gpubench.node.workloads import dask_compat

def connections(dask_scheduler):
    return sorted(str(comm) for comms in dask_scheduler.rpc.available.values() for comm in comms)

with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    call = functools.partial(client.run_on_scheduler, dask_compat.call_on_workers)
    call(functools.partial(tempfile.mkdtemp, dir=FOLDER))
    first = client.run_on_scheduler(connections)
    call(functools.partial(tempfile.mkdtemp, dir=FOLDER))
    assert client.run_on_scheduler(connections) == first, first
    try:
        call(functools.partial(os.rmdir, os.path.join(FOLDER, "none")))
    except RuntimeError as error:
        print(len(os.listdir(FOLDER)), "No such file or directory" in str(error))
"""


@pytest.mark.system
@pytest.mark.parametrize("stack", OLDEST_AND_NEWEST)
def test_all_workers_are_called_over_connections_that_the_scheduler_keeps(
    python39: str, stack: str, tmp_path: Path
) -> None:
    """``Client.run`` of the two older stacks opens new ones, which a clock around it would time."""
    code = CALLED.replace("FOLDER", repr(str(tmp_path)))
    done = subprocess.run(
        [obtain(stack, python39).python, "-c", code],
        env=quiet_environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "4 True\n"), done.stderr


def killed_worker(directory: Path) -> int:
    """The first worker below ``directory`` is killed once the run has a sample; its number."""
    until(lambda: any(path.stat().st_size for path in directory.glob("runs/*/samples.jsonl")))
    for process in sorted(Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):
            is_worker = (process / "cmdline").read_bytes().startswith(b"dask worker [")  # as Dask names them
            if is_worker and (process / "cwd").readlink().is_relative_to(directory):
                os.kill(int(process.name), signal.SIGKILL)
                return int(process.name)
    raise AssertionError("no worker")


@pytest.mark.system
def test_a_gpu_worker_that_dies_ends_its_workload_though_its_nanny_starts_another_one(
    start: Start, tmp_path: Path
) -> None:
    workload = dataclasses.replace(shuffled(400)[0], reps=100_000, timeout_s=900.0)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        killed = pool.submit(killed_worker, tmp_path)
        record, _ = start("ucxx-0.45.1", 2, "tcp", workloads=[workload])
    assert record.status == "failed"
    worker = rf"worker \S+ \(pid {killed.result()} on \S+\)"
    left = f"the cluster changed while it was measured: {worker} left"
    interrupted = f"transpose-sum: CommClosedError: .*{worker}"  # it was killed while the client asked it something
    assert re.match(f"{left}|{interrupted}", record.reason), record.reason


UNBOUND = """
import os
os.sched_setaffinity = lambda pid, cpus: None
"""


@pytest.mark.system
def test_a_run_whose_gpu_worker_is_not_on_the_cpus_near_its_gpu_fails(start: Start, tmp_path: Path) -> None:
    (tmp_path / "unbound").mkdir()
    (tmp_path / "unbound" / "sitecustomize.py").write_text(UNBOUND)
    path = f"{tmp_path / 'unbound'}:{STAND_INS}"
    record, processes = start("ucxx-0.45.1", 2, "tcp", variables={"PYTHONPATH": path})
    two = sorted(os.sched_getaffinity(0))
    (pid,) = {one["pid"] for one in processes if one.get("name") == "worker-0-0-0"}
    assert record.status == "failed"
    assert record.reason.startswith(f"worker-0-0-0 (pid {pid} on ")
    assert record.reason.endswith(f" has GPU 0, and is bound to CPUs {cpu_list(two)} instead of {two[0]}")


@pytest.mark.system
def test_a_run_whose_gpu_workers_compute_on_others_than_their_own_fails(start: Start) -> None:
    record, _ = start("ucxx-0.45.1", 2, "tcp", variables={"CUDA_DEVICE_ORDER": "FASTEST_FIRST"})
    assert record.status == "failed"
    assert record.reason.startswith("worker-0-0-0 (pid ")
    assert record.reason.endswith(
        " computes on the GPU at 0000:02:00, and has GPU 0, which is at 0000:01:00 (CUDA_DEVICE_ORDER?)"
    )


@pytest.mark.system
@pytest.mark.parametrize("stack", ["ucxx-0.45.1", pytest.param("ucx-py-0.29", marks=pytest.mark.long)])
def test_where_the_step_has_no_cpu_near_a_gpu_its_worker_may_use_all_of_the_step_and_the_run_warns(
    start: Start, stack: str
) -> None:
    record, processes = start(stack, 2, "tcp", node="absent")
    assert (record.status, record.reason) == ("ok", "")
    assert [[device, cpus] for _, device, cpus in places(processes)] == [["0", [0]], ["1", [0, 1]]]
    (line,) = [line for line in record.warnings if "GPU" in line]
    assert line.startswith("GPU workers may not use all CPUs near their GPUs: none of the 1 CPUs ")
    assert " near GPU 1 on " in line


@pytest.mark.long
@pytest.mark.system
def test_where_the_step_has_some_of_the_cpus_near_a_gpu_its_worker_is_on_those_and_the_run_warns(start: Start) -> None:
    record, processes = start("ucx-py-0.35", 2, "tcp", node="partly-absent")
    assert (record.status, record.reason) == ("ok", "")
    assert places(processes) == on_own(2, [[0], [1]])
    (line,) = [line for line in record.warnings if "GPU" in line]
    assert line.count("1 of the 2 CPUs") == 2


@pytest.mark.long
@pytest.mark.system
def test_where_nvml_says_no_cpus_nothing_is_expected_and_the_run_warns(start: Start) -> None:
    record, _ = start("ucxx-0.45.1", 1, "tcp", variables={"STAND_IN_NVML_AFFINITY": "3"})
    assert (record.status, record.reason) == ("ok", "")
    (line,) = [line for line in record.warnings if "GPU" in line]
    assert "NVML says no CPUs (error 3) near GPU 0 on " in line


@pytest.mark.system
def test_workers_on_instances_of_mig_are_on_the_cpus_near_their_gpus(start: Start) -> None:
    instances = ["MIG-00000000-0000-0000-0001-000000000000", "MIG-00000000-0000-0000-0000-000000000001"]
    record, processes = start(
        "ucxx-0.52.0", 2, "tcp", node="mig", variables={"CUDA_VISIBLE_DEVICES": ",".join(instances)}
    )
    assert (record.status, record.reason) == ("ok", "")
    assert places(processes) == [("worker-0-0-0", instances[0], [0]), ("worker-0-0-1", instances[1], [1])]


@pytest.mark.long
@pytest.mark.system
def test_workers_start_where_the_driver_knows_nothing_of_mig(start: Start) -> None:
    record, processes = start("ucx-py-0.35", 2, "tcp", node="old-driver")
    assert (record.status, record.reason) == ("ok", "")
    assert places(processes) == on_own(2, [[0], [1]])


UCP = """
import ctypes, os
ctypes.CDLL("libucp.so.0")
os.environ["UCX_MEMTYPE_CACHE"] = "n"
def init(options, env_takes_precedence):
    pass
"""
"""What of ucx-py shows over tcp: it loads UCX, and sets a variable. No package index has the ucx-py of that time."""


@pytest.mark.system
def test_gpu_workers_of_dask_cuda_22_12_load_the_images_ucx_over_tcp_too(
    start: Start, nvml: Path, tmp_path: Path
) -> None:
    (tmp_path / "ucp").mkdir()
    (tmp_path / "ucp" / "ucp.py").write_text(UCP)
    ((image, _),) = ensure(["1.19.0"], images_root(), lambda _line: None).values()
    more = {"PYTHONPATH": f"{tmp_path / 'ucp'}:{STAND_INS}", "NUMBA_ENABLE_CUDASIM": "1"}
    more["LD_LIBRARY_PATH"] = f"{image.env['LD_LIBRARY_PATH']}:{nvml}"
    record, processes = start("ucx-py-0.29", 1, "tcp", expect_ucx="1.19.0", variables=more)
    assert (record.status, record.reason) == ("ok", "")
    loaded = {one["role"]: one["ucx"]["loaded"] for one in processes}
    assert loaded == {"scheduler": "none", "worker": "1.19.0", "client": "none"}


@pytest.mark.long
@pytest.mark.system
def test_a_scheduler_without_gpu_beside_workers_whose_bar1_is_as_large_as_their_memory_is_no_contradiction(
    start: Start,
) -> None:
    """ucxx sets UCX_CUDA_COPY_MAX_REG_RATIO on a DGX-1, and not where NVML finds no driver (error 9)."""
    name = "STAND_IN_NVML_INIT"
    record, processes = start(
        "ucxx-0.45.1", 2, "ucx", node="dgx1", scheduler_on="launch-node", env_allow=["PATH", name], apart={name: "9"}
    )
    assert (record.status, record.reason) == ("ok", "")
    ratios = [(one["role"], one["ucx"]["env"].get("UCX_CUDA_COPY_MAX_REG_RATIO")) for one in processes]
    assert sorted(ratios) == [("client", "1.0"), ("scheduler", None), ("worker", "1.0"), ("worker", "1.0")]


def shuffled(size: int) -> list[WorkloadSpec]:
    """All workers send to all others."""
    params = complete("transpose-sum", {"size": size, "chunk": size // 2})
    return [WorkloadSpec("transpose-sum", "dask", params, reps=2, warmup=0, timeout_s=60.0)]


def explicitly_merged(join: str) -> WorkloadSpec:
    """All workers send to all others, past Dask's transfer log."""
    params = complete("merge", {"rows_per_worker": 200, "join": join})
    return WorkloadSpec("merge", "explicit-comms", params, reps=1, warmup=0, timeout_s=60.0)


@pytest.mark.system
@pytest.mark.parametrize("workloads", [shuffled(400), [explicitly_merged("shuffle")]])
def test_a_run_whose_workers_lack_a_transport_that_the_site_needs_fails(
    start: Start, workloads: list[WorkloadSpec]
) -> None:
    needs = {"same_node": ["cuda_ipc"], "between_nodes": []}
    record, _ = start("ucxx-0.45.1", 2, "ucx", need_transport=needs, workloads=workloads)
    assert [(workload.status, workload.reason) for workload in record.workloads] == [("ok", "")]
    assert record.status == "failed"
    assert record.reason.startswith("worker-0-0-")
    assert record.reason.endswith(
        " sent and received by tcp only, the site needs cuda_ipc on the same node (need_transport.same_node)"
    )


@pytest.mark.system
def test_a_run_whose_ucx_has_no_module_for_gpu_memory_fails(start: Start, nvml: Path, python39: str) -> None:
    ucx = obtain("ucxx-0.52.0", python39).env["LD_LIBRARY_PATH"]
    record, _ = start("ucxx-0.52.0", 1, "ucx", variables={"LD_LIBRARY_PATH": f"{nvml}:{ucx}"})
    assert record.status == "failed"
    assert " has UCX without its module for GPU memory (libuct_cuda): " in record.reason


CHANGING = """
import gc, sys
collect = gc.collect
def change(*words):
    if sys._getframe(1).f_code.co_name == "clean":
        import rmm
        rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource())
    return collect(*words)
gc.collect = change
"""
"""At the end of a workload, when the worker is cleaned, its memory resource is another one."""


@pytest.mark.system
def test_a_run_one_of_whose_workloads_changes_the_memory_pool_fails(start: Start, tmp_path: Path) -> None:
    (tmp_path / "changing").mkdir()
    (tmp_path / "changing" / "sitecustomize.py").write_text(CHANGING)
    path = f"{tmp_path / 'changing'}:{STAND_INS}"
    record, _ = start("ucx-py-0.35", 1, "tcp", rmm_pool=str(POOL), variables={"PYTHONPATH": path})
    assert record.status == "failed"
    assert record.reason.startswith("tasks changed how worker-0-0 (pid ")
    assert record.reason.endswith(" before, CudaMemoryResource of 0 bytes, arrays by rmm after it")


SPILLING = """
import json, tempfile, types
from dask.sizeof import sizeof
from dask_cuda.device_host_file import DeviceHostFile
from gpubench.node.workloads import dask_compat
class Data:
    __cuda_array_interface__ = {}
sizeof.register(Data)(lambda data: 1000)
data = DeviceHostFile(tempfile.mkdtemp(), device_memory_limit=2500, memory_limit=10**6)
worker = types.SimpleNamespace(data=data, metrics={})
dask_compat.count_spilling(worker)
said = []
for number in range(4):
    data[str(number)] = Data()
    said.append(worker.metrics[dask_compat.SPILLED](worker)["from_gpu"])
assert isinstance(data["0"], Data)
data["host"], data["more"] = b"0" * 600_000, b"1" * 600_000
print(json.dumps([said, dask_compat.spilled(worker)]))
"""


@pytest.mark.system
@pytest.mark.parametrize("stack", OLDEST_AND_NEWEST)
def test_what_dask_cuda_moves_from_a_gpu_to_main_memory_and_to_disk_is_counted(
    nvml: Path, python39: str, stack: str
) -> None:
    found = obtain(stack, python39)
    variables = found.variables(nvml, "tcp", {})
    variables["PYTHONPATH"] += f":{ROOT}"
    words = [found.python, "-c", SPILLING]
    done = subprocess.run(
        words, env=quiet_environment(**variables), capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    # A result that comes back moves another one.
    said, spilled = json.loads(done.stdout)
    assert (said, spilled["from_gpu"]) == ([0, 0, 1000, 2000], 3000)
    assert 600_000 <= spilled["to_disk"] < 700_000


@pytest.mark.system
@pytest.mark.parametrize(
    ("gpus", "more", "said"),
    [
        (
            2,
            {"CUDA_VISIBLE_DEVICES": "1"},
            "1 of 2 workers can have a GPU of their own (CUDA_VISIBLE_DEVICES = 1, NVML knows 2)",
        ),
        (1, {"CUDA_VISIBLE_DEVICES": ""}, "0 of 1 workers can have a GPU of their own (CUDA_VISIBLE_DEVICES = none"),
        (1, {"CUDA_VISIBLE_DEVICES": "7"}, "CUDA_VISIBLE_DEVICES names GPU 7, which NVML doesn't know on this node"),
        (1, {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, "0 of 1 workers can have a GPU of their own"),
        (1, {"STAND_IN_NVML_MODE": "3"}, "GPU 0 is in compute mode exclusive-process: client and"),
        (1, {"STAND_IN_NVML_MODE": "2"}, "GPU 0 is in compute mode prohibited: "),
    ],
)
def test_where_a_worker_can_have_no_gpu_of_its_own_one_line_says_so(
    start: Start, gpus: int, more: dict[str, str], said: str
) -> None:
    record, _ = start("ucxx-0.45.1", gpus, "tcp", supervisor=more)
    assert record.status == "failed"
    assert record.reason.startswith(said)


@pytest.mark.system
def test_a_scheduler_that_ucx_gives_no_listener_fails_the_run_in_its_words(start: Start) -> None:
    """Seen on a machine without RDMA, and to be expected on Slingshot."""
    only = {"UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}
    record, _ = start("ucxx-0.45.1", 1, "ucx", variables=only, deadlines=Deadlines(30.0, 20.0, 60.0))
    assert record.status == "failed"
    assert "none of the available components supports it" in record.reason


@pytest.mark.system
def test_a_run_on_gpus_that_somebody_uses_has_a_warning(start: Start) -> None:
    more = {"STAND_IN_NVML_USED": "12", "STAND_IN_NVML_BUSY": "40"}
    record, _ = start("ucxx-0.45.1", 1, "tcp", supervisor=more)
    assert (record.status, record.reason) == ("ok", "")
    assert [line for line in record.warnings if "used" in line] == [
        f"before this run somebody else used GPU 0: 12.0 GB, 40 % busy on {record.hosts[0]}"
    ]


CONNECTED = """
from distributed import Client, LocalCluster
from gpubench.node.workloads import families
from gpubench.node.workloads.base import WorkloadContext
from gpubench.node.workloads.catalogue import CATALOGUE

def connections(dask_worker):
    return [len(session["eps"]) for session in dask_worker._explicit_comm_state.values()]

with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    context = WorkloadContext(client, sorted(client.run(int)), 1, "cpu", "tcp")
    params = {name: param.default for name, param in CATALOGUE["merge"].params.items()}
    merge = families.create("merge", context, "explicit-comms", {**params, "rows_per_worker": 100, "join": "shuffle"})
    merge.setup()
    for _ in range(3):
        merge.prepare()
        assert merge.check(merge.once()[1]).status == "ok"
    print(*client.run(connections).values())
"""


@pytest.mark.system
@pytest.mark.parametrize("stack", ["ucxx-0.45.1", pytest.param("ucx-py-0.35", marks=pytest.mark.long)])
def test_explicit_comms_connect_before_the_clock_and_once(nvml: Path, python39: str, stack: str) -> None:
    found = obtain(stack, python39)
    variables = found.variables(nvml, "tcp", {})
    variables["PYTHONPATH"] += f":{ROOT}"
    words = [found.python, "-c", CONNECTED]
    done = subprocess.run(
        words, env=quiet_environment(**variables), capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[2] [2] [2]\n"), done.stderr


@pytest.mark.system
def test_explicit_comms_that_dask_does_not_use_are_skipped(start: Start) -> None:
    """Whatever an earlier workload of the run has left in the workers."""
    joins = ("broadcast", "shuffle", "broadcast")
    record, _ = start("ucxx-0.45.1", 2, "tcp", workloads=[explicitly_merged(join) for join in joins])
    skipped = ("skipped", 'Dask joined without a shuffle, so without explicit-comms: set join = "shuffle"')
    found = [(workload.status, workload.reason) for workload in record.workloads]
    assert found == [skipped, ("ok", ""), skipped]
