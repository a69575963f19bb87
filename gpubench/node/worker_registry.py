"""A preload of a standing cluster's scheduler: it writes the registered workers to a file whenever they change.

It runs in the scheduler's process, so that no requests are needed, and writes a few times a second at most. https://docs.dask.org/en/stable/customize-initialization.html
"""

import json
import os
import time
from pathlib import Path
from typing import Any, Dict

from distributed.diagnostics.plugin import SchedulerPlugin

from gpubench.node.dask_processes import REGISTRY_VARIABLE
from gpubench.node.writer.atomic import write_atomic

DELAY_S = 0.1


class WorkerRegistry(SchedulerPlugin):  # type: ignore[misc,unused-ignore]
    """Workers by address: their name, and when they registered (seconds since the epoch)."""

    name = "gpubench-worker-registry"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.workers: Dict[str, Dict[str, Any]] = {}
        self._due = False

    def add_worker(self, scheduler: Any, worker: str) -> None:
        known = scheduler.workers[worker]
        self.workers[worker] = {"name": str(known.name), "address": worker, "at": time.time()}
        self._write_soon(scheduler)

    def remove_worker(self, scheduler: Any, worker: str, **_more: Any) -> None:
        self.workers.pop(worker, None)
        self._write_soon(scheduler)

    def _write_soon(self, scheduler: Any) -> None:
        if not self._due:
            self._due = True
            scheduler.loop.call_later(DELAY_S, self._write)

    def _write(self) -> None:
        self._due = False
        write_atomic(self.path, json.dumps(list(self.workers.values())).encode("utf-8"))


def dask_setup(scheduler: Any) -> None:
    scheduler.add_plugin(WorkerRegistry(Path(os.environ[REGISTRY_VARIABLE])), name=WorkerRegistry.name)
