"""What one process of the cluster reports about itself. Runs in scheduler, workers and client.

A run asks the scheduler once and all workers once, so one function collects all that a process is asked for.
"""

import asyncio
import ctypes
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

from gpubench.node import forked, gpu_worker, image, ucx_log
from gpubench.node.machine import host
from gpubench.node.process import hash_of_archive
from gpubench.node.spec import near_gpu
from gpubench.node.variables import AT_START, ucx_variables
from gpubench.node.workloads import dask_compat, device, nvml, ucx

POLL_S = 0.01

REPORTED = (
    *("dask", "distributed", "numpy", "pandas", "cupy", "cudf", "rmm", "ucxx", "ucp", "distributed_ucxx", "dask_cuda"),
)
"""Libraries whose versions a process reports as far as it has imported them."""


def describe(role: str, build_manifest: str = "") -> Dict[str, Any]:
    """The process's own facts, as JSON-ready values; ``build_manifest`` is where its image says what it is."""
    library = ucx.loaded()
    return {
        "role": role,
        "host": host(),
        "pid": os.getpid(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "forked": forked.ROLE in sys.argv,
        "node_half": hash_of_archive(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "ucx": {
            "loaded": library["version"],
            "path": library["path"],
            "planned_path": ucx.first(AT_START.get("LD_LIBRARY_PATH", "")),
            "env_at_start": ucx_variables(AT_START),
            "env": ucx_variables(os.environ),
        },
        "connect_timeout": dask_compat.connect_timeout(),
        "versions": {
            name: str(getattr(sys.modules[name], "__version__", "?")) for name in REPORTED if name in sys.modules
        },
        "packages": image.packages_id(),
        "build_id": image.build_id(build_manifest),
    }


def worker_addresses(dask_scheduler: Any) -> List[str]:
    """Of the workers that are connected, for ``Client.run_on_scheduler``."""
    return list(dask_scheduler.workers)


def workers_now(dask_scheduler: Any) -> Dict[str, Any]:
    """``addresses`` as ``worker_addresses``, and ``short_of_memory`` as ``dask_compat`` has it, in one answer."""
    short = dask_compat.short_of_memory(dask_scheduler)
    return {"addresses": worker_addresses(dask_scheduler), "short_of_memory": short}


async def cluster_when_complete(
    dask_scheduler: Any, workers: int, timeout_s: float, build_manifest: str
) -> Dict[str, Any]:
    """Wait in the scheduler until so many workers are connected, for ``Client.run_on_scheduler``.

    Returns ``process`` (``describe`` with the ``address``, taken before the wait), ``connected`` (workers at the end of
    the wait) and ``registered_at`` (see ``dask_compat.registrations``).
    """
    process = dict(describe("scheduler", build_manifest), address=dask_scheduler.address)
    deadline = time.monotonic() + timeout_s
    while len(dask_scheduler.workers) < workers and time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)
    return {
        "process": process,
        "connected": len(dask_scheduler.workers),
        "registered_at": dask_compat.registrations(dask_scheduler),
    }


def worker_at_start(dask_worker: Any, build_manifest: str, kind: str) -> Dict[str, Any]:
    """``describe`` with ``name`` and ``memory_pool``, for ``Client.run``; ``kind`` is the device.

    The worker's port is another one in every run. A GPU worker says its ``gpu`` (see ``gpu_worker.place``),
    ``cpus_near_gpu`` (see ``near_gpu.share``), where NVML has that GPU ``on_bus`` and where CUDA has the one on which
    it computes, UCX's module for GPU memory, and the variables with which its parent was started. From now on it counts
    what it spills.
    """
    facts = dict(describe("worker", build_manifest), name=str(dask_worker.name), memory_pool=device.memory_pool(kind))
    if kind == "gpu":
        place = gpu_worker.place()
        facts.update(gpu=place, cpus_near_gpu=near_gpu.share(place))
        facts["on_bus"] = {"planned": nvml.on_bus(place["device"]), "used": device.on_bus()}
        facts["ucx"].update(
            env_at_start=ucx_variables(gpu_worker.given_environment()), cuda_module=ucx.mapped(ucx.CUDA_MODULE)
        )
        facts["spilling_is_seen"] = dask_compat.count_spilling(dask_worker)
    return facts


def gpu_memory(dask_worker: Any) -> Dict[str, Any]:
    """``memory_pool`` of a GPU worker now, and what it has ``spilled``, for ``Client.run``."""
    return {"memory_pool": device.memory_pool("gpu"), "spilled": dask_compat.spilled(dask_worker)}


def ucx_said(kind: str) -> Dict[str, Any]:
    """What this process's UCX log says; see ``ucx_log.read``. ``kind`` is the device."""
    ctypes.CDLL(None).fflush(None)  # UCX's log is a C stream, and holds lines back until its buffer is full
    path = Path(os.environ["UCX_LOG_FILE"].replace("%p", str(os.getpid())))
    log = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return ucx_log.read(log, kind)


def clock() -> float:
    """Seconds since 1970 as this machine has them, for ``Client.run_on_scheduler``."""
    return time.time()
