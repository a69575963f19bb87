"""Which UCX this process has loaded: found in the process's memory map and asked for its version."""

import ctypes
from pathlib import Path
from typing import Dict, List, Set

NO_UCX = "none"
CUDA_MODULE = "libuct_cuda"
"""UCX leaves a module out whose libraries it can't load, and says so at log level debug only
(ucs/sys/module.c:278@v1.19.0). Without this one it takes GPU memory for main memory."""


def loaded() -> Dict[str, str]:
    """``{"version": "1.19.0", "path": "/…/libucp.so.0"}`` of the libucp in this process, version ``none`` without one.

    The version comes from ``ucp_get_version_string`` of the library that is mapped, not from a package's metadata.
    """
    paths = mapped("libucp.so")
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


def mapped(name: str) -> List[str]:
    """Files in this process's memory map whose name starts with ``name``."""
    paths: Set[str] = set()
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2]
        if path and path.rpartition("/")[2].startswith(name):
            paths.add("/" + path)
    return sorted(paths)
