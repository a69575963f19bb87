"""Everything that differs between dask versions (2022.3 to the newest), and nothing else.

Node half: runs in the client and, through ``client.run``, in the workers.
"""

import collections
import inspect
import time
from typing import Any, Deque, Dict, List, Optional, Set

_LOG_NAMES = ("transfer_incoming_log", "incoming_transfer_log")
"""The second in early 2022; both, the old one deprecated, in 2023.3 and 2025.7; only the first in 2026.8."""


def incoming_log(worker: Any) -> Deque[Dict[str, Any]]:
    """The worker's log of what it fetched from other workers, from now on without a bound.

    The bound is 100 000 entries in 2023.3 but 1000 in 2025.7 (``distributed.admin.low-level-log-length``): fewer than
    one join on a large cluster makes.
    """
    name = _log_name(worker)
    log: Deque[Dict[str, Any]] = getattr(worker, name)
    if log.maxlen is not None:
        log = collections.deque(log)
        setattr(worker, name, log)
    return log


def log_bound(dask_worker: Any) -> Optional[int]:
    """How many entries the worker's transfer log keeps, None: all; for ``client.run``, before anybody counts."""
    bound: Optional[int] = getattr(dask_worker, _log_name(dask_worker)).maxlen
    return bound


def bound_log(bounds: Dict[str, Optional[int]], dask_worker: Any) -> None:
    """Give the log the bound back that it had (by worker's address): the cluster belongs to somebody else."""
    name = _log_name(dask_worker)
    setattr(dask_worker, name, collections.deque(getattr(dask_worker, name), bounds.get(dask_worker.address)))


def _log_name(worker: Any) -> str:
    return next(name for name in _LOG_NAMES if hasattr(worker, name))


def holders(client: Any, collection: Any) -> Dict[str, List[str]]:
    """Addresses of the workers that hold each block of a persisted collection, by ``str(key)``.

    Scheduler keys are strings in 2023.3, tuples in 2025.7.
    """
    return {str(key): list(workers) for key, workers in client.who_has(collection).items()}


def partition_holders(client: Any, frame: Any) -> List[Set[str]]:
    """Addresses of the workers that hold each partition of a persisted dataframe, in the order of its partitions.

    By the number at the end of each key: with dask-expr (2025.7) a persisted frame's own keys are aliases of those.
    """
    numbered = {int(key.rstrip(")").rpartition(",")[2]): held for key, held in holders(client, frame).items()}
    return [set(numbered[number]) for number in sorted(numbered)]


def task_shuffle(method: Any) -> Dict[str, str]:
    """The keyword that makes a dataframe ``method`` shuffle by tasks; its name changed between 2023.3 and 2025.7.

    By tasks as in dask-cuda's benchmarks: the newer peer-to-peer shuffle passes neither through the transfer log nor
    through GPU memory.
    """
    names = inspect.signature(method).parameters
    return {"shuffle_method" if "shuffle_method" in names else "shuffle": "tasks"}


def _count_keys(dask_worker: Any) -> int:
    return len(dask_worker.data)


def drain(client: Any, timeout_s: float = 10.0) -> int:
    """Wait until no worker holds a result; how many are left when the time is over.

    Releasing a future is a message like any other: the next workload must not start among the leavings of this one.
    """
    end = time.monotonic() + timeout_s
    while True:
        left: int = sum(client.run(_count_keys).values())
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)
