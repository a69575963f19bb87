"""Workloads whose timed region is "build a graph, persist it, wait"."""

import abc
import time
from typing import Any, Callable, List, Tuple

import distributed

from gpubench.node.workloads import device
from gpubench.node.workloads.base import Measurement


class LazyMeasurement(Measurement):
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
