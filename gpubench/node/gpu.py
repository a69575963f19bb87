"""Find GPUs and start workers on them. NVML is asked, because a CUDA library can be imported without a GPU."""

import ctypes
import importlib.util
from typing import Callable, Dict, List, Mapping

from gpubench.node.admission import PRELOAD

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


def cuda_worker() -> Callable[[List[str]], None]:
    """``dask cuda worker``: one process per GPU that ``CUDA_VISIBLE_DEVICES`` names, all of them without it."""
    from dask_cuda.cli import worker

    if not count():
        raise SystemExit("no GPU answers to NVML here, and GPU workers need one each")
    return lambda arguments: worker.main(args=arguments, prog_name="dask cuda worker")
