"""Back-end ``dask-noop``: the graph that another back-end would run, of tasks that do nothing: the scheduler's share.

Of any family whose timed region is "build a graph, persist it, wait": it provides ``lazy``.
"""

import abc
import time
from typing import Any, Callable, List, Tuple

import distributed

from gpubench.workloads import dask_compat, device
from gpubench.workloads.base import Answer, Measurement, judged

BACKEND = "dask-noop"
DONE = "done nothing"


def nothing(*_inputs: Any) -> str:
    """The task."""
    return DONE


class LazyMeasurement(Measurement):
    """A workload that hands one collection to Dask and waits."""

    @abc.abstractmethod
    def lazy(self) -> Any:
        """The collection to be persisted; called inside the clock, whether it is built there or was before it."""

    def persisted(self) -> Tuple[float, Any]:
        """Persist it and wait, as dask-cuda's benchmarks do: the seconds, and what the workers hold then."""
        client = self.context.client
        start = time.perf_counter()
        held = client.persist(self.lazy())
        distributed.wait(held)
        device.synchronize_workers(client, self.context.device)
        return time.perf_counter() - start, held

    def once(self) -> Tuple[float, Any]:
        """``persisted``; behind the clock, ``figures_of`` every partition of the result."""
        client = self.context.client
        seconds, held = self.persisted()
        return seconds, client.gather(client.map(self.figures_of(), distributed.futures_of(held), pure=False))

    def figures_of(self) -> Callable[[Any], List[int]]:
        """The importable function that a worker calls with a partition; what it returns is compared."""
        raise NotImplementedError


class NoOp(Measurement):
    """The same data, keys and dependencies as the measurement that it wraps, and so the same messages to schedule them.

    The inputs are the real ones, as in dask-cuda: the scheduler places tasks by where they lie and how large they are,
    and what a task needs from another worker still moves. Only what tasks would compute is gone, and with it the
    traffic of what they would make.
    """

    backend = BACKEND

    def __init__(self, real: LazyMeasurement) -> None:
        super().__init__(real.context, real.params)
        self._real = real
        self._partitions = 0

    @property
    def nominal_bytes(self) -> int:
        """Those of the real one, as in dask-cuda."""
        return self._real.nominal_bytes

    def prepare(self) -> None:
        """Generate the data, as for the real one."""
        self._real.prepare()

    def once(self) -> Tuple[float, List[Any]]:
        """Build the graph, optimise it, replace its tasks (not counted), submit, wait."""
        client = self.context.client
        start = time.perf_counter()
        collection = self._real.lazy()
        graph, keys = dask_compat.materialised(client, collection)
        began = time.perf_counter()
        graph = dask_compat.with_tasks_replaced(graph, nothing)
        uncounted = time.perf_counter() - began
        futures = client.get(graph, keys, sync=False)
        distributed.wait(futures)
        device.synchronize_workers(client, self.context.device)
        seconds = time.perf_counter() - start - uncounted
        self._partitions = collection.npartitions
        return seconds, client.gather(futures)

    def check(self, answer: List[Any]) -> Answer:
        """One result for every partition that the collection says it has, none of them computed."""
        wrong = sum(1 for result in answer if not isinstance(result, str) or result != DONE)
        details = {"results": len(answer), "expected": self._partitions, "wrong": wrong}
        return judged(len(answer) == self._partitions and not wrong, details)

    def teardown(self) -> None:
        """Drop the data."""
        self._real.teardown()
