"""Everything that differs between dask versions (2022.3 to the newest), and nothing else.

Node half: runs in the client and, through ``client.run``, in the workers.
"""

import collections
import inspect
import time
from typing import Any, Callable, Deque, Dict, List, Set, Tuple

from dask.core import flatten

_LOG_NAMES = ("transfer_incoming_log", "incoming_transfer_log")
"""The second in early 2022; both, the old one deprecated, in 2023.3 and 2025.7; only the first in 2026.8."""


def incoming_log(worker: Any) -> Deque[Dict[str, Any]]:
    """The worker's log of what it fetched from other workers, from now on without a bound.

    The bound is 100 000 entries in 2023.3 but 1000 in 2025.7 (``distributed.admin.low-level-log-length``): fewer than
    one join on a large cluster makes.
    """
    name = next(name for name in _LOG_NAMES if hasattr(worker, name))
    log: Deque[Dict[str, Any]] = getattr(worker, name)
    if log.maxlen is not None:
        log = collections.deque(log)
        setattr(worker, name, log)
    return log


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


def shuffle_keyword(method: Any) -> str:
    """The keyword that says how a dataframe ``method`` shuffles; its name changed between 2023.3 and 2025.7."""
    names = inspect.signature(method).parameters
    return "shuffle_method" if "shuffle_method" in names else "shuffle"


def task_shuffle(method: Any) -> Dict[str, str]:
    """Makes a dataframe ``method`` shuffle by tasks.

    As in dask-cuda's benchmarks: the newer peer-to-peer shuffle passes neither through the transfer log nor through GPU
    memory.
    """
    return {shuffle_keyword(method): "tasks"}


def materialised(client: Any, collection: Any) -> Tuple[Dict[Any, Any], List[Any]]:
    """The graph that persisting a collection would run, optimised, and the keys of its partitions in their order.

    Since 2025.4 graphs are expressions, which would otherwise become tasks in the scheduler only.
    """
    try:
        from dask.base import collections_to_expr
    except ImportError:
        graph = client.collections_to_dsk([collection], optimize_graph=True)
        return dict(graph), list(flatten(collection.__dask_keys__()))
    expression = collections_to_expr([collection], True).optimize()
    return dict(expression.__dask_graph__()), list(flatten(expression.__dask_keys__()))


def with_tasks_replaced(graph: Dict[Any, Any], function: Callable[..., Any]) -> Dict[Any, Any]:
    """The same keys and dependencies, every task calls ``function``; data, futures and aliases stay as they are.

    Tasks are objects since 2024.12, and were tuples before.
    """
    try:
        from dask._task_spec import Alias, DataNode, Task, TaskRef, convert_legacy_graph
    except ImportError:
        return {key: _replaced(graph, task, function) for key, task in graph.items()}
    return {
        key: node
        if isinstance(node, (Alias, DataNode))
        else Task(key, function, *(TaskRef(other) for other in node.dependencies), _data_producer=node.data_producer)
        for key, node in convert_legacy_graph(graph).items()
    }


def _replaced(graph: Dict[Any, Any], task: Any, function: Callable[..., Any]) -> Any:
    from dask.core import get_dependencies, istask
    from distributed.utils_comm import unpack_remotedata

    if not istask(task) and not isinstance(task, list):
        return task
    return (function, *get_dependencies(graph, task=task), *unpack_remotedata(task)[1])


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
