"""Stand-in for the wheel ``libucx`` in a stack that must hold no UCX: the libraries come from LD_LIBRARY_PATH alone.

The module has to exist: ``libucxx.load_library`` loads librmm, which libucxx.so needs, only where ``import libucx``
works (libucxx/load.py of ucxx 0.45 to 0.52).
"""

import ctypes


def load_library() -> "list[ctypes.CDLL]":
    """Load UCX as its wheel would.

    Raises:
        OSError: no UCX on LD_LIBRARY_PATH.
    """
    names = ("libucs.so.0", "libucs_signal.so.0", "libuct.so.0", "libucp.so.0")
    return [ctypes.CDLL(name, ctypes.RTLD_LOCAL) for name in names]
