"""Programs that a library's package brings along."""

import os
from pathlib import Path


def program_of(library: str, name: str) -> str:
    """The path of a program; empty where the library came without it.

    It is looked for in the ``bin`` of the three folders above the library: ``PREFIX/bin`` for ``PREFIX/lib/libucp.so``,
    and ``/usr/bin`` for ``/usr/lib/x86_64-linux-gnu/libucp.so``.
    """
    paths = [parent / "bin" / name for parent in [*Path(library).parents][:3]] if library else []
    return next((str(path) for path in paths if os.access(path, os.X_OK)), "")
