"""Everything that differs between dask versions (2022.11 to the newest), and nothing else.

It runs in the client and, through ``client.run``, in the workers.
"""

import asyncio
import collections
import contextlib
import gc
import inspect
import time
from typing import Any, Callable, Deque, Dict, Iterator, List, Set, Tuple

DRAIN_POLL_S = 0.01


def incoming_log(worker: Any) -> Deque[Dict[str, Any]]:
    """The worker's log of what it fetched from other workers, from now on without a bound.

    The bound is 100 000 entries in 2023.3 but 1000 in 2025.7 (``distributed.admin.low-level-log-length``): fewer than
    one join on a large cluster makes.
    """
    log: Deque[Dict[str, Any]] = worker.transfer_incoming_log
    if log.maxlen is not None:
        log = worker.transfer_incoming_log = collections.deque(log)
    return log


def clean(dask_worker: Any) -> None:
    """Leave nothing of the last workload in a worker: functions kept unpickled, garbage, logs of transfers.

    ``cache_loads`` holds what tasks are made of, large arrays among it; distributed has it until 2023.
    Source: DeepOps and draco collect between benchmarks in the same way.
    """
    from distributed import worker

    cache = getattr(worker, "cache_loads", None)
    if cache is not None:
        cache.clear()
    incoming_log(dask_worker).clear()
    dask_worker.transfer_outgoing_log.clear()
    gc.collect()


SPILLED = "gpubench_spilled"
"""Name among a GPU worker's metrics, which its heartbeats carry to the scheduler."""
_BUFFERS = {"from_gpu": "device_buffer", "to_disk": "host_buffer"}
"""Of dask-cuda's ``DeviceHostFile``: what data leaves, from 22.12 to 26.10. Over its limit it goes from the GPU to main
memory, and from there to disk. Dask's own figure of spilled bytes is 0 there (worker.py:1042@2025.7.0)."""


def count_spilling(dask_worker: Any) -> bool:
    """Let a worker of dask-cuda count, from now on, the bytes of results that leave its GPU, or main memory for disk.

    Whether it can: with JIT-unspill, dask-cuda's ``ProxifyHostFile`` has no such buffers.

    Source: zict's ``Buffer``, whose ``fast_to_slow_callbacks`` run for every result that moves.
    """
    from dask.sizeof import sizeof

    moved = dict.fromkeys(_BUFFERS, 0)

    def counting(what: str) -> Callable[[Any, Any], None]:
        def count(_key: Any, value: Any) -> None:
            moved[what] += sizeof(value)

        return count

    can = False
    for what, name in _BUFFERS.items():
        callbacks = getattr(getattr(dask_worker.data, name, None), "fast_to_slow_callbacks", None)
        if callbacks is not None:
            callbacks.append(counting(what))
            can = True
    # A new dictionary: a heartbeat may be half way through the old one, and a worker whose heartbeat fails closes. It
    # waits for the GPUs' figures there (distributed/worker.py, get_metrics and gpu_metric).
    dask_worker.metrics = {**dask_worker.metrics, SPILLED: lambda _worker: dict(moved)}
    return can


def spilled(dask_worker: Any) -> Dict[str, int]:
    """Bytes since ``count_spilling``; empty in a worker that doesn't count."""
    return dict(dask_worker.metrics[SPILLED](dask_worker)) if SPILLED in dask_worker.metrics else {}


def short_of_memory(dask_scheduler: Any) -> Dict[str, Dict[str, Any]]:
    """Workers that are paused or have spilled, as their last heartbeat says, for ``Client.run_on_scheduler``.

    By address: ``name``, ``paused``, and in bytes ``used``, ``spilled`` (to disk), ``from_gpu`` (to main memory) and
    ``limit`` (0: none).
    """
    workers = {}
    for address, worker in dask_scheduler.workers.items():
        metrics = worker.metrics or {}
        counted = metrics.get(SPILLED, {})
        spilled = metrics.get("spilled_bytes", {}).get("disk", 0) + counted.get("to_disk", 0)
        paused = worker.status.name == "paused"
        if paused or spilled or counted.get("from_gpu"):
            workers[address] = {
                "name": str(worker.name),
                "paused": paused,
                "used": int(metrics.get("memory", 0)),
                "spilled": int(spilled),
                "from_gpu": int(counted.get("from_gpu", 0)),
                "limit": int(worker.memory_limit or 0),
            }
    return workers


def registrations(scheduler: Any) -> List[float]:
    """When each worker that is there now first registered, in seconds of the scheduler's clock since 1970, sorted."""
    first: Dict[str, float] = {}
    for at, event in scheduler.get_events("all"):
        if isinstance(event, dict) and event.get("action") == "add-worker" and event["worker"] in scheduler.workers:
            first.setdefault(event["worker"], float(at))
    return sorted(first.values())


async def call_on_workers(function: Callable[[], object], dask_scheduler: Any) -> None:
    """Call a function on every worker over connections that the scheduler keeps, for ``Client.run_on_scheduler``.

    ``Client.run`` opens a new one to each worker in distributed 2022.11 and 2023.11 (``Scheduler.broadcast``:
    ``send_recv(comm, close=True)``): inside a clock, that would be timed too.

    Raises:
        RuntimeError: it failed on a worker; holds the words of its exception.
    """
    from distributed.protocol.pickle import dumps

    addresses = list(dask_scheduler.workers)
    calls = [dask_scheduler.rpc(address).run(function=dumps(function)) for address in addresses]
    for address, answer in zip(addresses, await asyncio.gather(*calls)):
        if answer["status"] != "OK":
            raise RuntimeError("{}: {}".format(address, answer.get("exception_text", answer["status"])))


def holders(client: Any, collection: Any) -> Dict[str, List[str]]:
    """Addresses of the workers that hold each block of a persisted collection, by ``str(key)``.

    Scheduler keys are strings in 2023.3, tuples in 2025.7.
    """
    return {str(key): list(workers) for key, workers in client.who_has(collection).items()}


def partition_holders(client: Any, frame: Any) -> List[Set[str]]:
    """Addresses of the workers that hold each partition of a persisted dataframe, in the order of its partitions.

    By the number at the end of each key: with dask-expr (2025.7) a persisted frame's own keys are aliases of those.
    """
    numbered = {_partition_number(key): held for key, held in holders(client, frame).items()}
    return [set(numbered[number]) for number in sorted(numbered)]


def block_futures(client: Any, array: Any) -> Dict[str, Any]:
    """The future of each block of a persisted array, by ``str(key)``; see ``holders``."""
    return {str(future.key): future for future in client.futures_of(array)}


def partition_futures(client: Any, frame: Any) -> List[Any]:
    """The future of each partition of a persisted dataframe, in their order; see ``partition_holders``."""
    return sorted(client.futures_of(frame), key=lambda future: _partition_number(str(future.key)))


def _partition_number(key: str) -> int:
    return int(key.rstrip(")").rpartition(",")[2])


def shuffle_keyword(method: Any) -> str:
    """The keyword that says how a dataframe ``method`` shuffles; its name changed between 2023.3 and 2025.7."""
    names = inspect.signature(method).parameters
    return "shuffle_method" if "shuffle_method" in names else "shuffle"


def connect_timeout() -> str:
    """How long this process tries to connect to another, as Dask's configuration says it."""
    import dask

    return str(dask.config.get("distributed.comm.timeouts.connect", ""))


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
    from dask.core import flatten

    try:
        from dask.base import collections_to_expr
    except ImportError:
        graph = client.collections_to_dsk([collection], optimize_graph=True)
        return dict(graph), list(flatten(collection.__dask_keys__()))
    expression = collections_to_expr([collection], True).optimize()
    return dict(expression.__dask_graph__()), list(flatten(expression.__dask_keys__()))


BY_TASKS = {"dataframe.shuffle.method": "tasks"}
"""``task_shuffle`` as configuration, for methods without a keyword that shuffle in newer versions (``nunique``)."""


async def _drained(timeout_s: float, cleaned: bool, dask_worker: Any) -> int:
    end = time.monotonic() + timeout_s
    while dask_worker.data and time.monotonic() < end:
        await asyncio.sleep(DRAIN_POLL_S)
    if cleaned:
        clean(dask_worker)
    return len(dask_worker.data)


def drain(client: Any, timeout_s: float = 10.0, *, clean: bool = False) -> Dict[str, int]:
    """Wait until no worker holds a result, and ``clean`` the workers then; by address, how many results are left.

    Releasing a future is a message like any other: the next workload must not start among the leavings of this one.
    One round trip: each worker waits for itself.
    """
    left: Dict[str, int] = client.run(_drained, timeout_s=timeout_s, cleaned=clean)
    return left


@contextlib.contextmanager
def finish_times(client: Any) -> Iterator[Dict[Any, float]]:
    """When this client hears that a result is ready, by key, in seconds of ``time.perf_counter``.

    By listening to the scheduler's own message, where both old and new clients dispatch it: a callback per future costs
    a coroutine and a thread switch, which for tasks that do nothing is a good part of what is measured.
    """
    handlers = client._stream_handlers
    original = handlers["key-in-memory"]
    times: Dict[Any, float] = {}

    def note(key: Any = None, **rest: Any) -> Any:
        times[key] = time.perf_counter()
        return original(key=key, **rest)

    handlers["key-in-memory"] = note
    try:
        yield times
    finally:
        handlers["key-in-memory"] = original
