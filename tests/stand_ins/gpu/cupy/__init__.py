"""Stand-in for CuPy: NumPy under its name, and a device whose work is always done.

Real: nothing but the names. Arrays are ``numpy.ndarray``, so what CuPy refuses (an object array, implicit conversion to
NumPy) passes here.
"""

from typing import Any

import numpy as np

__version__ = "0+stand-in"


def asnumpy(array: Any) -> Any:
    return np.asarray(array)


class cuda:  # noqa: N801 - as the original has it
    class Device:
        def synchronize(self) -> None:
            pass


def __getattr__(name: str) -> Any:
    return getattr(np, name)
