"""Is there a GPU? NVML is asked: that a CUDA library imports proves nothing."""

import ctypes

DEVICES = ("auto", "cpu", "gpu")


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
    """``auto`` → ``gpu`` where a GPU answers, else ``cpu``."""
    if device != "auto":
        return device
    return "gpu" if count() else "cpu"
