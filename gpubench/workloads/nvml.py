"""Model, driver, CPUs, energy and throttling of GPUs, from the driver's library. Node half: standard library only.

Source: NVML API reference: nvmlInit_v2, nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetName,
nvmlSystemGetDriverVersion, nvmlDeviceGetTotalEnergyConsumption (millijoules since the driver was loaded; Volta and
newer), nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetHandleByUUID,
nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDeviceGetCpuAffinity (a bit per CPU). 0 is NVML_SUCCESS.
"""

import collections
import ctypes
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE; the driver's version needs 80


class Device(NamedTuple):
    """NVML, initialised, and its handle of a GPU."""

    library: Any
    handle: Any


def devices() -> Dict[str, Device]:
    """The GPUs that the driver shows to this process, as ``gpu-0``; empty without a driver."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
    number = ctypes.c_uint(0)
    if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetCount_v2(ctypes.byref(number)) != 0:
        return {}
    found = {}
    for index in range(number.value):
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) == 0:
            found[f"gpu-{index}"] = Device(library, handle)
    return found


def joules(device: Device) -> Optional[float]:
    """Joules since the driver was loaded; None where the GPU doesn't count them (before Volta, or a part of a GPU)."""
    count = ctypes.c_ulonglong(0)
    failed = device.library.nvmlDeviceGetTotalEnergyConsumption(device.handle, ctypes.byref(count))
    return None if failed else count.value / 1e3


def throttle_reasons(device: Device) -> Optional[int]:
    """Why its clock is below the highest now, as NVML's bits (nvmlClocksThrottleReason*); None where it can't say."""
    reasons = ctypes.c_ulonglong(0)
    failed = device.library.nvmlDeviceGetCurrentClocksThrottleReasons(device.handle, ctypes.byref(reasons))
    return None if failed else reasons.value


def models() -> str:
    """The GPUs of this node by model, ``4 x NVIDIA A100-SXM4-40GB``; empty without a GPU."""
    found = collections.Counter(_text(one.library.nvmlDeviceGetName, one.handle) for one in devices().values())
    return ", ".join(f"{number} x {name}" for name, number in sorted(found.items()))


def driver() -> str:
    """Version of the driver, ``550.54.15``; empty without a GPU."""
    found: List[Device] = list(devices().values())
    return _text(found[0].library.nvmlSystemGetDriverVersion) if found else ""


def cpus_near(device: str) -> Tuple[List[int], str]:
    """The CPUs near a GPU, and why NVML doesn't say them, else an empty string.

    ``device`` is a word of ``CUDA_VISIBLE_DEVICES``: an index, or the UUID of a GPU or of an instance of MIG.
    """
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return [], str(error)
    handle = ctypes.c_void_p()
    words = (os.sysconf("SC_NPROCESSORS_CONF") + 63) // 64
    bits = (ctypes.c_ulong * words)()
    failed = library.nvmlInit_v2()
    if not failed and device.isdigit():
        failed = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(device)), ctypes.byref(handle))
    elif not failed:
        failed = library.nvmlDeviceGetHandleByUUID(device.encode("ascii", "replace"), ctypes.byref(handle))
    if not failed and device.startswith("MIG-"):  # an older driver has no such function, and no MIG
        failed = library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle, ctypes.byref(handle))
    failed = failed or library.nvmlDeviceGetCpuAffinity(handle, ctypes.c_uint(words), bits)
    if failed:
        return [], f"error {failed}"
    return [cpu for cpu in range(64 * words) if bits[cpu // 64] >> cpu % 64 & 1], ""


def _text(ask: Any, *about: Any) -> str:
    """What NVML writes into a buffer; ``unknown`` where it can't say."""
    buffer = ctypes.create_string_buffer(NAME_BYTES)
    failed = ask(*about, buffer, ctypes.c_uint(NAME_BYTES))
    return "unknown" if failed else buffer.value.decode("ascii", "replace")
