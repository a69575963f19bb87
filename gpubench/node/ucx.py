"""Which UCX this process has loaded, and which transports it uses.

Neither is taken from a package list: the library is found in the process's memory map and asked for its version, the
transports are read from the log that UCX writes while it connects.
"""

import ctypes
import re
from pathlib import Path
from typing import Dict, List, Set

NO_UCX = "none"
_UNUSED = re.compile(r"\bUCX\s+WARN\s+unused environment variables?: (.*)")
_LANES = re.compile(r"\b[a-z_]+\(([^()]+)\)")
_CONFIGURATION = re.compile(r"\bcfg#\d+\b|\bep_cfg\[\d+\]:")


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


def mapped(name: str) -> List[str]:
    """Files in this process's memory map whose name starts with ``name``."""
    paths: Set[str] = set()
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2]
        if path and path.rpartition("/")[2].startswith(name):
            paths.add("/" + path)
    return sorted(paths)


def lanes(log: str) -> List[str]:
    """``tl/device`` of every lane that UCX's log (level info) reports: ``["tcp/lo"]``.

    Source: ``ucp_worker_print_used_tls`` in ucp_worker.c, whose lines read
    ``… intra-node cfg#1 tag(tcp/lo) am(tcp/lo) …``, in older releases (1.12) ``… ep_cfg[1]: tag(tcp/lo) …``.
    """
    found: Set[str] = set()
    for line in log.splitlines():
        mark = _CONFIGURATION.search(line)
        if mark:
            for group in _LANES.findall(line[mark.end() :]):
                found.update(lane for lane in re.split(r"[\s+]+|\.\.", group) if "/" in lane)
    return sorted(found)


def unused(log: str) -> Dict[str, str]:
    """The ``UCX_*`` that UCX says it doesn't read, each with the name that UCX suggests instead, or an empty one.

    Source: ``ucs_config_parser_print_env_vars`` in parser.c, whose line reads ``… unused environment variables: UCX_A;
    UCX_TSL (maybe: UCX_TLS?)``. UCX writes it when its first worker is made, about variables of all modules: one of a
    module that isn't used on this machine is unused, too.
    """
    found = {}
    for names in _UNUSED.findall(log):
        for words in names.split(";"):
            name, _, near = words.strip().partition(" (maybe: ")
            found[name] = near.rstrip("?)")
    return found


def transports(all_lanes: List[str]) -> List[str]:
    """``["tcp/lo", "rc_mlx5/mlx5_0:1"]`` → ``["rc_mlx5", "tcp"]``; a process's lane to itself is no transport."""
    return sorted({lane.partition("/")[0] for lane in all_lanes} - {"self"})
