"""Stand-in for CuPy: NumPy under its name, and a device whose work is always done.

Real: nothing but the names. Arrays are ``numpy.ndarray``, so what CuPy refuses (an object array, implicit conversion to
NumPy) passes here.
"""

from typing import Any, List

import numpy as np

__version__ = "0+stand-in"


def asnumpy(array: Any) -> Any:
    return np.asarray(array)


class _Pool:
    def malloc(self, size: int) -> None:
        """Never called: arrays are NumPy's."""


_allocators: List[Any] = [_Pool().malloc]


class cuda:  # noqa: N801 - as the original has it
    @staticmethod
    def get_allocator() -> Any:
        return _allocators[-1]

    @staticmethod
    def set_allocator(allocator: Any) -> None:
        _allocators.append(allocator)

    class Device:
        def synchronize(self) -> None:
            pass


def __getattr__(name: str) -> Any:
    return getattr(np, name)
