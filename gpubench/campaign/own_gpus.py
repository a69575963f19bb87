"""The GPUs of this machine, as NVML knows them."""

import ctypes

from gpubench.errors import MissingToolError, UsageError
from gpubench.model.site import Site

NVML = "libnvidia-ml.so.1"


class _Memory(ctypes.Structure):
    """``nvmlMemory_t`` of the NVML API reference, bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def require_own_gpus(site: Site, workers: int) -> None:
    """Where the site is this machine and its workers are on GPUs: see that each of a node's workers can have one.

    Raises:
        UsageError: there are fewer GPUs.
        MissingToolError: this machine has no NVIDIA driver, or it doesn't answer.
    """
    if not (site.layout.one_machine and site.device == "gpu"):
        return
    gpus = len(gpu_memories(f"site {site.name}", otherwise="--site local measures on CPUs"))
    if gpus < workers:
        raise UsageError(
            f"site {site.name}: {workers} workers on GPUs, NVML knows {gpus}", then=f"--workers {gpus or 1}"
        )


def gpu_memories(demand: str, *, otherwise: str) -> list[int]:
    """Bytes of each GPU that the driver knows; ``demand`` is what needs them, ``otherwise`` what to type without them.

    Source: NVML API reference, ``nvmlDeviceGetHandleByIndex_v2`` and ``nvmlDeviceGetMemoryInfo``; 0 is NVML_SUCCESS.

    Raises:
        MissingToolError: there is no driver, or it doesn't answer.
    """
    try:
        nvml = ctypes.CDLL(NVML)
    except OSError:
        raise MissingToolError(f"{demand}: this machine has no NVIDIA driver ({NVML})", then=otherwise) from None
    if nvml.nvmlInit_v2() != 0:
        raise MissingToolError(f"{demand}: the NVIDIA driver of this machine doesn't answer", then="see nvidia-smi")
    try:
        count = ctypes.c_uint(0)
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return []
        return [_memory(nvml, index, demand) for index in range(count.value)]
    finally:
        nvml.nvmlShutdown()


def _memory(nvml: ctypes.CDLL, index: int, demand: str) -> int:
    device, memory = ctypes.c_void_p(), _Memory()
    failed = nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) or nvml.nvmlDeviceGetMemoryInfo(
        device, ctypes.byref(memory)
    )
    if failed:
        raise MissingToolError(f"{demand}: NVML doesn't know the memory of GPU {index}", then="see nvidia-smi")
    return int(memory.total)
