"""Stand-in for CuPy: NumPy under its name, and a device whose work is always done.

Real: nothing but the names. Arrays are ``numpy.ndarray``, so what CuPy refuses (an object array, implicit conversion to
NumPy) passes here.
"""

import os
from typing import Any, List

import numpy as np

__version__ = "0+stand-in"


def asnumpy(array: Any) -> Any:
    return np.asarray(array)


class _Pool:
    def malloc(self, size: int) -> None:
        """Never called: arrays are NumPy's."""


_COUNT = ("STAND_IN_GPUS", "2")
_allocators: List[Any] = [_Pool().malloc]


class cuda:  # noqa: N801 - as the original has it
    @staticmethod
    def get_allocator() -> Any:
        return _allocators[-1]

    @staticmethod
    def set_allocator(allocator: Any) -> None:
        _allocators.append(allocator)

    class runtime:  # noqa: N801
        @staticmethod
        def getDevice() -> int:
            return 0

        @staticmethod
        def deviceGetPCIBusId(_device: int) -> str:
            """Of the first of CUDA_VISIBLE_DEVICES, where NVML's stand-in has it; by default CUDA turns their order."""
            number, count = (int(os.environ.get(*of).split(",")[0]) for of in (("CUDA_VISIBLE_DEVICES", "0"), _COUNT))
            is_turned = os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID"
            return f"0000:{count - number if is_turned else number + 1:02X}:00.0"

    class Device:
        def synchronize(self) -> None:
            pass


def __getattr__(name: str) -> Any:
    return getattr(np, name)
