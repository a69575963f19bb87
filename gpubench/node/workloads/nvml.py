"""Model, driver, CPUs, energy and throttling of GPUs, from the driver's library.

Source: NVML API reference: nvmlInit_v2, nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetName,
nvmlSystemGetDriverVersion, nvmlDeviceGetTotalEnergyConsumption (millijoules since the driver was loaded; Volta and
newer), nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetHandleByUUID,
nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDeviceGetCpuAffinity (a bit per CPU), nvmlDeviceGetMemoryInfo,
nvmlDeviceGetUtilizationRates, nvmlDeviceGetComputeMode, nvmlDeviceGetEnforcedPowerLimit (milliwatts),
nvmlDeviceGetMigMode, nvmlDeviceGetPciInfo_v3. 0 is NVML_SUCCESS.
"""

import collections
import contextlib
import ctypes
import itertools
import os
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

VISIBLE = "CUDA_VISIBLE_DEVICES"
EXCLUSIVE_PROCESS, PROHIBITED = "exclusive-process", "prohibited"
_COMPUTE_MODES = ("default", "exclusive-thread", PROHIBITED, EXCLUSIVE_PROCESS)  # nvmlComputeMode_t
_IDLE = 0x1
"""nvmlClocksThrottleReasonGpuIdle: nothing runs, which slows nothing down."""
NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE; the driver's version needs 80


class Device(NamedTuple):
    library: Any
    handle: Any


def named(text: str) -> List[str]:
    """The GPUs that a value of ``CUDA_VISIBLE_DEVICES`` names: CUDA reads up to the first word that names none."""
    names = (word.strip() for word in text.split(","))
    return list(itertools.takewhile(lambda word: word.isdigit() or word.startswith(("GPU-", "MIG-")), names))


def count() -> int:
    """How many GPUs the driver knows, 0 without a driver."""
    number = ctypes.c_uint(0)
    try:
        failed = _initialised().nvmlDeviceGetCount_v2(ctypes.byref(number))
    except NvmlError:
        return 0
    return 0 if failed else number.value


def devices() -> Dict[str, Device]:
    """The GPUs that the driver shows to this process, as ``gpu-0``; empty without a driver."""
    return _open(map(str, range(count())))


def own() -> Dict[str, Device]:
    """Those of them that this process may use, as ``CUDA_VISIBLE_DEVICES`` says; all where it says nothing."""
    return _open(named(os.environ[VISIBLE])) if VISIBLE in os.environ else devices()


def _open(names: Iterable[str]) -> Dict[str, Device]:
    gpus = {}
    for word in names:
        with contextlib.suppress(NvmlError):
            gpus[f"gpu-{word}"] = device_of(word)
    return gpus


class NvmlError(Exception):
    """NVML doesn't answer; the message says why."""


def _initialised() -> Any:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        raise NvmlError(str(error)) from None
    failed = library.nvmlInit_v2()
    if failed:
        raise NvmlError(f"error {failed}")
    return library


def device_of(word: str) -> Device:
    """The GPU that a word of ``CUDA_VISIBLE_DEVICES`` names: an index, or the UUID of a GPU or of an instance of MIG.

    Raises:
        NvmlError: there is no such one, or no driver.
    """
    library, handle = _initialised(), ctypes.c_void_p()
    if word.isdigit():
        failed = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(word)), ctypes.byref(handle))
    else:
        failed = library.nvmlDeviceGetHandleByUUID(word.encode("ascii", "replace"), ctypes.byref(handle))
    if failed:
        raise NvmlError(f"error {failed}")
    return Device(library, handle)


def knows(word: str) -> bool:
    """Whether there is a GPU, or a part of one, that a word of ``CUDA_VISIBLE_DEVICES`` names."""
    try:
        return bool(device_of(word))
    except NvmlError:
        return False


def compute_mode(word: str) -> str:
    """``default``, ``exclusive-process`` or ``prohibited``; empty where NVML doesn't say it (parts of a GPU).

    Raises:
        NvmlError: there is no such GPU.
    """
    mode, device = ctypes.c_uint(0), device_of(word)
    failed = device.library.nvmlDeviceGetComputeMode(device.handle, ctypes.byref(mode))
    return "" if failed else _COMPUTE_MODES[mode.value]


class _Pci(ctypes.Structure):
    """``nvmlPciInfo_t``."""

    _fields_ = (
        ("legacy", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "id", "subsystem")),
        ("text", ctypes.c_char * 32),
    )


def on_bus(word: str) -> str:
    """Where the PCI bus has a GPU, ``0000:c1:00``; empty where NVML doesn't say it (parts of a GPU)."""
    pci = _Pci()
    try:
        device = device_of(word)
    except NvmlError:
        return ""
    failed = device.library.nvmlDeviceGetPciInfo_v3(device.handle, ctypes.byref(pci))
    return "" if failed else f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}"


class _Memory(ctypes.Structure):
    """``nvmlMemory_t``, bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    """``nvmlUtilization_t``: percent of the last second in which a kernel ran, or memory was read or written."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


def used(device: Device) -> Tuple[int, Optional[int]]:
    """Bytes of its memory that anybody uses, and percent of the last second that it was busy; None: NVML can't say."""
    memory, utilization = _Memory(), _Utilization()
    unknown = device.library.nvmlDeviceGetMemoryInfo(device.handle, ctypes.byref(memory))
    failed = device.library.nvmlDeviceGetUtilizationRates(device.handle, ctypes.byref(utilization))
    return 0 if unknown else memory.used, None if failed else utilization.gpu


def limits() -> str:
    """What bounds the speed of this node's GPUs: ``4 x 400 W``, ``2 x 400 W in parts (MIG)``; empty without a GPU."""
    counts = collections.Counter(_limits(device) for device in devices().values())
    return ", ".join(f"{number} x {text}" for text, number in sorted(counts.items()))


def _limits(device: Device) -> str:
    milliwatts, mig, pending = ctypes.c_uint(0), ctypes.c_uint(0), ctypes.c_uint(0)
    unknown = device.library.nvmlDeviceGetEnforcedPowerLimit(device.handle, ctypes.byref(milliwatts))
    # A driver older than the A100 lacks the function.
    mig_of = getattr(device.library, "nvmlDeviceGetMigMode", None)
    whole = mig_of is None or mig_of(device.handle, ctypes.byref(mig), ctypes.byref(pending)) or not mig.value
    return ("unknown" if unknown else f"{milliwatts.value / 1000:.0f} W") + ("" if whole else " in parts (MIG)")


def joules(device: Device) -> Optional[float]:
    """Joules since the driver was loaded; None where the GPU doesn't count them (before Volta, or a part of a GPU)."""
    count = ctypes.c_ulonglong(0)
    failed = device.library.nvmlDeviceGetTotalEnergyConsumption(device.handle, ctypes.byref(count))
    return None if failed else count.value / 1e3


def throttle_reasons(device: Device) -> Optional[int]:
    """Why its clock is below the highest now, as NVML's bits (nvmlClocksThrottleReason*); None where it can't say.

    That it is idle is no reason.
    """
    reasons = ctypes.c_ulonglong(0)
    failed = device.library.nvmlDeviceGetCurrentClocksThrottleReasons(device.handle, ctypes.byref(reasons))
    return None if failed else reasons.value & ~_IDLE


def models() -> str:
    """The GPUs of this node by model, ``4 x NVIDIA A100-SXM4-40GB``; empty without a GPU."""
    counts = collections.Counter(
        _text(device.library.nvmlDeviceGetName, device.handle) for device in devices().values()
    )
    return ", ".join(f"{number} x {name}" for name, number in sorted(counts.items()))


def driver() -> str:
    """Version of the driver, ``550.54.15``; empty without a GPU."""
    gpus: List[Device] = list(devices().values())
    return _text(gpus[0].library.nvmlSystemGetDriverVersion) if gpus else ""


def cpus_near(device: str) -> Tuple[List[int], str]:
    """The CPUs near a GPU, and why NVML doesn't say them, else an empty string.

    ``device`` is a word of ``CUDA_VISIBLE_DEVICES``: an index, or the UUID of a GPU or of an instance of MIG.
    """
    longs = (os.sysconf("SC_NPROCESSORS_CONF") + 63) // 64
    bits = (ctypes.c_ulong * longs)()
    try:
        library, handle = device_of(device)
    except NvmlError as error:
        return [], str(error)
    failed = 0
    if device.startswith("MIG-"):  # an older driver has no such function, and no MIG
        failed = library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle, ctypes.byref(handle))
    failed = failed or library.nvmlDeviceGetCpuAffinity(handle, ctypes.c_uint(longs), bits)
    if failed:
        return [], f"error {failed}"
    return [cpu for cpu in range(64 * longs) if bits[cpu // 64] >> cpu % 64 & 1], ""


def _text(ask: Any, *about: Any) -> str:
    """What NVML writes into a buffer; ``unknown`` where it can't say."""
    buffer = ctypes.create_string_buffer(NAME_BYTES)
    failed = ask(*about, buffer, ctypes.c_uint(NAME_BYTES))
    return "unknown" if failed else buffer.value.decode("ascii", "replace")
