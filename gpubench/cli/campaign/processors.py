"""The CPUs and GPUs of this machine: what was asked for must be there, nothing is clamped silently."""

from __future__ import annotations

import ctypes
import os

from gpubench.errors import MissingToolError, UsageError
from gpubench.model.site import Site
from gpubench.runtimes import RUNTIMES

NVML = "libnvidia-ml.so.1"


class _Memory(ctypes.Structure):
    """``nvmlMemory_t`` of the NVML API reference, bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def require_cpus(asked: int, site: Site) -> None:
    """Raise UsageError unless a node of the site, or this machine where it is the site, has so many CPUs."""
    if site.layout.one_machine:
        there, where = len(os.sched_getaffinity(0)), "this machine lets us use"
    else:
        there, where = site.node.cores or asked, f"a node of {site.name} has"
    if asked > there:
        raise UsageError(
            f"--cpus {asked}: {where} {there}",
            then=f"--cpus {there}, or --workers {asked} if they are to share them",
        )


def require_gpus(asked: int, site: Site) -> list[str]:
    """See that so many GPUs are there, and say what the profile can't know: settings (``KEY=VALUE``) for it.

    Raises:
        UsageError: fewer GPUs, or images that can't use them.
        MissingToolError: this machine has no NVIDIA driver.
    """
    kind = RUNTIMES[site.runtime].KIND if site.runtime in RUNTIMES else ""
    settings = ['device="gpu"']
    if not site.layout.one_machine:
        _enough(asked, site.node.gpus, f"a node of {site.name} has")
        return settings
    memories = gpu_memories()
    _enough(asked, len(memories), "NVML knows")
    if kind == "venv":
        raise UsageError(
            f"--gpus {asked}: images of kind venv hold no CUDA libraries",
            then="--runtime conda or docker with --set image.cuda=VERSION, or start a cluster of your own and name its "
            "--scheduler-file",
        )
    return [*settings, f"node.gpus={asked}", f'node.gpu_memory="{min(memories[:asked])}B"']


def gpu_memories() -> list[int]:
    """Bytes of each GPU that the driver knows.

    Source: NVML API reference, ``nvmlDeviceGetHandleByIndex_v2`` and ``nvmlDeviceGetMemoryInfo``; 0 is NVML_SUCCESS.

    Raises:
        MissingToolError: there is no driver, or it doesn't answer.
    """
    try:
        nvml = ctypes.CDLL(NVML)
    except OSError:
        raise MissingToolError(f"--gpus: this machine has no NVIDIA driver ({NVML})", then="--cpus N") from None
    if nvml.nvmlInit_v2() != 0:
        raise MissingToolError("--gpus: the NVIDIA driver of this machine doesn't answer", then="see nvidia-smi")
    try:
        count = ctypes.c_uint(0)
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return []
        return [_memory(nvml, index) for index in range(count.value)]
    finally:
        nvml.nvmlShutdown()


def _memory(nvml: ctypes.CDLL, index: int) -> int:
    device, memory = ctypes.c_void_p(), _Memory()
    failed = nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) or nvml.nvmlDeviceGetMemoryInfo(
        device, ctypes.byref(memory)
    )
    if failed:
        raise MissingToolError(f"--gpus: NVML doesn't know the memory of GPU {index}", then="see nvidia-smi")
    return int(memory.total)


def _enough(asked: int, there: int, where: str) -> None:
    if asked > there:
        raise UsageError(f"--gpus {asked}: {where} {there}", then=f"--gpus {there}" if there else "--cpus N")
