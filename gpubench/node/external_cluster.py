"""A cluster that another program started: its description, and our code in its processes while we look."""

import contextlib
import pkgutil
import signal
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

from gpubench.node.stop import StoppedError
from gpubench.node.workloads.clock import poll_until

PACKAGE = "gpubench.node"
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SETTLE_S = 5.0
"""Longest wait: other clients may run tasks of any length."""
POLL_S = 0.02
MUST_AGREE = ("python", "dask", "distributed")
SHOULD_AGREE = ("numpy", "pandas", "cloudpickle", "msgpack", "tornado")


def versions(said: Any) -> Dict[str, str]:
    """By package; Python's as major.minor. A worker that didn't answer has none."""
    packages = said.get("packages", {}) if isinstance(said, dict) else {}
    found = {str(name): str(version) for name, version in dict(packages).items()}
    if "python" in found:
        found["python"] = ".".join(found["python"].split(".")[:2])
    return {name: found[name] for name in (*MUST_AGREE, *SHOULD_AGREE) if name in found}


@contextlib.contextmanager
def code_installed(client: Any, archive: Path) -> Iterator[None]:
    """Inside, our code can be imported in scheduler and workers; afterwards it can't."""
    source = (pkgutil.get_data(PACKAGE, "zip_importer.py") or b"").decode("utf-8")
    names = {"__name__": "gpubench_zip_importer", "ARCHIVE": archive.read_bytes()}
    # `exec` because any Python has it: a function of ours is sent by its name, which those processes can't import yet.
    everywhere = (client.run, client.run_on_scheduler)
    try:
        for run in everywhere:
            run(exec, f"{source}\ninstall(ARCHIVE)\n", names)
        yield
    finally:
        # A signal has no effect any more: we are ending, and still have to remove our code.
        with contextlib.suppress(StoppedError):
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        _await_tasks(client)
        for run in everywhere:
            run(exec, f"{source}\nremove()\n", {"__name__": "gpubench_zip_importer"})


def _await_tasks(client: Any) -> None:
    """Wait until no task runs: a late task of ours would import what is being removed."""
    poll_until(lambda: not client.run_on_scheduler(processing), time.monotonic() + SETTLE_S, POLL_S)


def processing(dask_scheduler: Any) -> int:
    """How many tasks the workers have been given and haven't done, for ``run_on_scheduler``."""
    return sum(len(worker.processing) for worker in dask_scheduler.workers.values())


def workers_of(dask_scheduler: Any) -> List[Dict[str, Any]]:
    """Every worker as the scheduler knows it, for ``run_on_scheduler``: ``scheduler_info`` leaves out all but five."""
    return [
        {
            "address": str(worker.address),
            "host": str(worker.host),
            "name": str(worker.name),
            "threads": int(worker.nthreads),
            "memory_limit": int(worker.memory_limit or 0),
        }
        for _, worker in sorted(dask_scheduler.workers.items())
    ]
