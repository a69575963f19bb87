"""Scheduler and workers: Dask's own command-line entry points, started in a process that dies with its supervisor.

The supervisor starts these processes in ``node``; GPUs of workers are chosen in ``gpu``.
"""

import contextlib
import time
from pathlib import Path
from typing import Callable, List

from gpubench.node import gpu_worker
from gpubench.node.spec import RunSpec
from gpubench.node.spec.memory import usable_memory
from gpubench.node.workloads.clock import poll_until

ADDRESS_IN_FILE = "@"
RESULT_FILE = "client-result.json"
"""What a client leaves in its scratch directory for its supervisor."""
POLL_S, LONGEST_POLL_S = 0.02, 0.1
REGISTRY = "gpubench.node.worker_registry"
REGISTRY_VARIABLE = "GPUBENCH_WORKER_REGISTRY"
"""Preload of a scheduler that writes the registered workers, and the variable with the file's path."""

NO_DASHBOARD = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
"""Without a dashboard Dask still serves HTTP, on every interface unless an address is given."""


def address_in(word: str, timeout_s: float) -> str:
    """The scheduler's address: the word itself, or the content of FILE for ``@FILE``, once it exists.

    Raises:
        OSError: no such file within ``timeout_s``.
    """
    if not word.startswith(ADDRESS_IN_FILE):
        return word
    path = Path(word[len(ADDRESS_IN_FILE) :])
    poll_until(path.exists, time.monotonic() + timeout_s, POLL_S, longest_s=LONGEST_POLL_S)
    return path.read_text(encoding="utf-8")


def scheduler_arguments(spec: RunSpec, scheduler_file: str) -> List[str]:
    """Words for ``dask scheduler``: port 0, the job's interface only, no dashboard."""
    return [
        *("--protocol", spec.scheme),
        *("--interface", spec.interface),
        *("--port", "0"),
        *("--scheduler-file", scheduler_file),
        *NO_DASHBOARD,
        "--no-show",
    ]


def worker_arguments(spec: RunSpec, address: str, name: str, directory: str) -> List[str]:
    """Words for ``dask worker`` and ``dask cuda worker``: what both accept, and the GPU's own."""
    return [
        address,
        *("--protocol", spec.scheme),
        *("--interface", spec.interface),
        *("--nthreads", str(spec.threads_per_worker)),
        *("--memory-limit", str(spec.memory_limit or _fair_share(spec))),
        *("--name", name),
        *("--local-directory", directory),
        *("--death-timeout", str(int(spec.deadlines.start_s))),
        *NO_DASHBOARD,
        *gpu_worker.worker_options(spec.device, spec.rmm_pool),
    ]


def _fair_share(spec: RunSpec) -> int:
    """Bytes: half of the memory here over the node's workers, where the plan couldn't know how much a node has."""
    return usable_memory() // 2 // (spec.workers_per_node * (1 + len(spec.beside)))


def run_scheduler(arguments: List[str]) -> None:
    from distributed.cli.dask_scheduler import main

    main.main(args=arguments, prog_name="dask scheduler")


def cpu_worker() -> Callable[[List[str]], None]:
    """``dask worker``, without a nanny unless the arguments ask for one, so that a dead worker is not replaced.

    A command that starts several workers needs nannies.
    """
    from distributed.cli.dask_worker import main

    def become(arguments: List[str]) -> None:
        wanted = {"--nanny", "--nworkers"} & set(arguments)
        main.main(args=[*arguments, *([] if wanted else ["--no-nanny"])], prog_name="dask worker")

    return become


def import_for_all(spec: RunSpec) -> None:
    """Import what scheduler and workers need, and what takes longest of what the bindings import."""
    from distributed.cli import dask_scheduler  # noqa: F401

    WORKERS[spec.device]()
    if spec.protocol == "ucx":
        with contextlib.suppress(ImportError):
            import numba.cuda  # noqa: F401


WORKERS = {"cpu": cpu_worker, "gpu": gpu_worker.cuda_worker}
"""By device: imports what it needs, and returns what becomes the worker when it is called with its words."""
