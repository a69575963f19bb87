"""Which UCX a process has loaded, by its memory map: its version, its programs, and its configuration here."""

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Dict, List, Mapping, Set

from gpubench.node.spec.records import UCX_CONFIGURATIONS

_ANSWER_S = 20.0
NO_UCX = "none"
LIBRARY = "libucp.so"
CUDA_MODULE = "libuct_cuda"
"""UCX leaves a module out whose libraries it can't load, and says so at log level debug only
(ucs/sys/module.c:278@v1.19.0). Without this one it takes GPU memory for main memory."""


def loaded() -> Dict[str, str]:
    """``{"version": "1.19.0", "path": "/…/libucp.so.0"}`` of the libucp in this process, version ``none`` without one.

    The version comes from ``ucp_get_version_string`` of the library that is mapped, not from a package's metadata.
    """
    paths = mapped(LIBRARY)
    if not paths:
        return {"version": NO_UCX, "path": ""}
    library = ctypes.CDLL(paths[0])
    library.ucp_get_version_string.restype = ctypes.c_char_p
    version = library.ucp_get_version_string().decode("ascii", "replace").split()[0]
    return {"version": version, "path": ", ".join(paths)}


def first(search: str) -> str:
    """The file of the libucp that ``LD_LIBRARY_PATH`` = ``search`` leads to, as it would be mapped; empty: to none."""
    paths = (Path(folder) / "libucp.so.0" for folder in search.split(":") if folder)
    return next((str(path.resolve()) for path in paths if path.exists()), "")


def mapped(name: str, pid: str = "self") -> List[str]:
    """Files in a process's memory map whose name starts with ``name``."""
    paths: Set[str] = set()
    for line in Path("/proc", pid, "maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2]
        if path and path.rpartition("/")[2].startswith(name):
            paths.add("/" + path)
    return sorted(paths)


def program_of(library: str, name: str) -> str:
    """The path of a program of UCX; empty where the library came without it.

    It is looked for in the ``bin`` of the three folders above the library: ``PREFIX/bin`` for ``PREFIX/lib/libucp.so``,
    and ``/usr/bin`` for ``/usr/lib/x86_64-linux-gnu/libucp.so``.
    """
    paths = [parent / "bin" / name for parent in [*Path(library).parents][:3]] if library else []
    return next((str(path) for path in paths if os.access(path, os.X_OK)), "")


def configurations(library: str, environment: Mapping[str, str]) -> Dict[str, str]:
    """Two answers of ``ucx_info``, by file name: what differs between them is derived from the machine; or none.

    Args:
        library: path of the libucp that the run's processes have loaded.
        environment: of the run; without its ``UCX_*``, so that defaults are printed.
    """
    program = program_of(library, "ucx_info")
    if not program:
        return {}
    plain = {name: value for name, value in environment.items() if not name.startswith("UCX_")}
    try:
        return {
            name: subprocess.run(
                [program, "-c", "-a", "-f"],
                env=plain,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_ANSWER_S,
                check=False,
            ).stdout.decode("utf-8", "replace")
            for name in UCX_CONFIGURATIONS
        }
    except (OSError, subprocess.TimeoutExpired):
        return {}
