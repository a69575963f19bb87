"""Find GPUs and start workers on them. NVML is asked, because a CUDA library can be imported without a GPU."""

import ctypes
import importlib.util
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

from gpubench.node.admission import PRELOAD
from gpubench.workloads import nvml

DEVICES = ("auto", "cpu", "gpu")
VISIBLE = "CUDA_VISIBLE_DEVICES"


def count() -> int:
    """How many GPUs the driver knows, 0 without a driver.

    Source: NVML API reference, nvmlInit_v2 and nvmlDeviceGetCount_v2; 0 is NVML_SUCCESS.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    if nvml.nvmlInit_v2() != 0:
        return 0
    number = ctypes.c_uint(0)
    failed = nvml.nvmlDeviceGetCount_v2(ctypes.byref(number))
    nvml.nvmlShutdown()
    return 0 if failed else number.value


def resolve(device: str) -> str:
    """``auto`` → ``gpu`` where a GPU answers and this Python has cupy, else ``cpu``."""
    if device != "auto":
        return device
    return "gpu" if count() and importlib.util.find_spec("cupy") else "cpu"


def chosen(workers: int, inherited: Mapping[str, str]) -> Dict[str, str]:
    """The variable that shows a node's workers ``workers`` of its GPUs; empty where there are no more than those.

    They are the first ones of ``inherited``'s own variable, where the scheduler gave the job some of the node's GPUs,
    else the first ones of the node. ``dask cuda worker`` starts a worker on every GPU that it sees.
    """
    there = count()
    if there <= workers:
        return {}
    allotted = [word for word in inherited.get(VISIBLE, "").split(",") if word]
    return {VISIBLE: ",".join((allotted or [str(index) for index in range(there)])[:workers])}


def worker_processes(device: str, workers: int) -> int:
    """How many commands start the ``workers`` of a node: ``dask cuda worker`` starts one per GPU that it sees."""
    return 1 if device == "gpu" else workers


def worker_options(device: str, rmm_pool: str) -> List[str]:
    """Words for ``dask cuda worker`` beside those that it shares with ``dask worker``.

    ``rmm_pool`` in bytes makes a pool of that size; under ``none`` and ``default`` no option is given: without it,
    ``dask cuda worker`` makes no pool. Its nannies start workers as new processes, which close themselves to others.
    Source: dask-cuda's API reference, ``dask cuda worker --rmm-pool-size``.
    """
    if device != "gpu":
        return []
    pool = ["--rmm-pool-size", rmm_pool] if rmm_pool.isdigit() else []
    return [*pool, "--preload", PRELOAD]


DEATH_TIMEOUT = "--death-timeout"


def cuda_worker() -> Callable[[List[str]], None]:
    """``dask cuda worker``: one process per GPU that ``CUDA_VISIBLE_DEVICES`` names, all of them without it."""
    from dask_cuda import cuda_worker

    command = _command()
    if not count():
        raise SystemExit("no GPU answers to NVML here, and GPU workers need one each")
    bind_to_own_gpus(cuda_worker)
    options = {option for parameter in command.params for option in parameter.opts}

    def become(arguments: List[str]) -> None:
        # 22.12 and 23.02 have it not, and take its words for those of a preload. Our supervisor ends such workers.
        if DEATH_TIMEOUT in arguments and DEATH_TIMEOUT not in options:
            place = arguments.index(DEATH_TIMEOUT)
            arguments = [*arguments[:place], *arguments[place + 2 :]]
        command.main(args=arguments, prog_name="dask cuda worker")

    return become


def _command() -> Any:
    from dask_cuda import cli

    if hasattr(cli, "worker"):
        return cli.worker
    from dask_cuda.cli.dask_cuda_worker import main  # until 22.12

    return main


def bind_to_own_gpus(cuda_worker: Any) -> None:
    """Let dask-cuda's module ``cuda_worker`` give every worker the CPUs, and the memory limit, of its own GPU.

    dask-cuda gives worker i of n those of GPU 2·i mod n, in all versions from 21.08 to 26.10: it asks
    ``nvml_device_index(i, cuda_visible_devices(i))`` (cuda_worker.py:197,220@v25.08.00), and takes element i of a list
    that ``cuda_visible_devices(i)`` has already turned so that the worker's own GPU is its first
    (utils.py:543@v22.12.00). ``LocalCUDACluster`` asks for the first. What this leads to is checked in every run.

    Where the step has none of those CPUs, dask-cuda 22.12 and 23.12 end the worker (plugins.py:14@v23.12.00, without
    ``try``); newer ones leave it on all of the step's, and so do these now.
    """
    index = getattr(cuda_worker, "nvml_device_index", None)
    if index is not None:
        cuda_worker.nvml_device_index = lambda _number, visible: index(0, visible)
    cpus = getattr(cuda_worker, "get_cpu_affinity", None)
    if cpus is not None:
        step = os.sched_getaffinity(0)
        cuda_worker.get_cpu_affinity = lambda device: sorted(step.intersection(cpus(device)) or step)


def place() -> Dict[str, Any]:
    """Of a worker of ``dask cuda worker``: its GPU, the CPUs near it, and those of its step; see ``near_gpu``.

    Its parent, who isn't bound, may use those of the step.
    """
    device = os.environ.get(VISIBLE, "0").split(",")[0]
    near, unknown = nvml.cpus_near(device)
    return {"device": device, "near": near, "unknown": unknown, "step": sorted(os.sched_getaffinity(os.getppid()))}


def given_environment() -> Dict[str, str]:
    """Variables with which the parent of such a worker was started.

    The worker itself inherits what the binding sets in its parent, by the GPUs of the node.
    """
    text = Path(f"/proc/{os.getppid()}/environ").read_bytes().decode("utf-8", "surrogateescape")
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)
