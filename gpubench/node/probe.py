"""What one process of the cluster says of itself. Runs in scheduler, workers and client alike."""

import hashlib
import os
import platform
import socket
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

from gpubench.node import build, ucx
from gpubench.node.environment import AT_START, ucx_variables
from gpubench.workloads import dask_compat

REPORTED = (
    "dask",
    "distributed",
    "numpy",
    "pandas",
    "cupy",
    "cudf",
    "rmm",
    "ucxx",
    "ucp",
    "distributed_ucxx",
    "dask_cuda",
)


def describe(role: str, build_manifest: str = "") -> Dict[str, Any]:
    """The process's own facts, as JSON-ready values; ``build_manifest`` is where its image says what it is."""
    library = ucx.loaded()
    return {
        "role": role,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "node_half": hash_of_archive(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "ucx": {
            "loaded": library["version"],
            "path": library["path"],
            "env_at_start": ucx_variables(AT_START),
            "env": ucx_variables(os.environ),
        },
        "versions": versions(),
        "packages": build.packages_id(),
        "build_id": build.build_id(build_manifest),
    }


def describe_scheduler(dask_scheduler: Any, build_manifest: str = "") -> Dict[str, Any]:
    """``describe`` for ``Client.run_on_scheduler``, with the scheduler's address."""
    return dict(describe("scheduler", build_manifest), address=dask_scheduler.address)


def describe_worker(dask_worker: Any, build_manifest: str = "") -> Dict[str, Any]:
    """``describe`` for ``Client.run``, with the worker's name: its port is another one in every run."""
    return dict(describe("worker", build_manifest), name=str(dask_worker.name))


def count_workers(dask_scheduler: Any) -> int:
    """How many workers the scheduler knows, for ``Client.run_on_scheduler``."""
    return len(dask_scheduler.workers)


def worker_registrations(dask_scheduler: Any) -> List[float]:
    """``dasks.registrations``, for ``Client.run_on_scheduler``."""
    return dask_compat.registrations(dask_scheduler)


def clock() -> float:
    """Seconds since 1970 as this machine has them, for ``Client.run_on_scheduler``."""
    return time.time()


def versions() -> Dict[str, str]:
    """Versions of the libraries that this process has imported."""
    return {name: str(getattr(sys.modules[name], "__version__", "?")) for name in REPORTED if name in sys.modules}


def hash_of_archive() -> str:
    """SHA-256 of the ``node.pyz`` that this very module was imported from (not of one that lies around)."""
    imported_from = __file__.partition(".pyz")[0] + ".pyz"
    if not Path(imported_from).is_file():
        return f"not from an archive: {__file__}"
    return hashlib.sha256(Path(imported_from).read_bytes()).hexdigest()
