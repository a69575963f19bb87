"""Groupby with three aggregates: dask-cuda's ``local_cudf_groupby``."""

import functools
import time
import uuid
from typing import Any, List, Tuple

import distributed

from gpubench.workloads import dask_compat, device, frames, groupby_data
from gpubench.workloads.base import Answer, WorkloadContext
from gpubench.workloads.noop import LazyMeasurement

ROW_BYTES = 24


class GroupBy(LazyMeasurement):
    """Maximum and count of one column, mean of another, by an integer key."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._token = uuid.uuid4().hex[:8]
        self._round = 0
        self._data: Any = None
        self._expected: groupby_data.Figures = []
        self.parts, self.rows = int(params["in_parts"]), int(params["rows_per_chunk"])
        if not self.parts or not self.rows:
            raise ValueError("groupby needs a chunk, and a row in it")
        self.keys = max(1, int(float(params["unique_ratio"]) * self.parts * self.rows))
        self._arguments = (self.rows, self.keys, context.device)

    @property
    def nominal_bytes(self) -> int:
        """Rows × item sizes of the input."""
        return self.parts * self.rows * ROW_BYTES

    @property
    def least_moved_bytes(self) -> int:
        """One number from every other worker with data, where it lies on them and ends in one partition."""
        if self.params["generate"] or int(self.params["split_out"]) > 1:
            return 0
        return (min(self.parts, len(self.context.workers)) - 1) * 8

    def setup(self) -> None:
        """Work out every group in the workers, by counting instead of grouping."""
        client = self.context.client
        partial = functools.partial(groupby_data.dense, rows=self.rows, keys=self.keys, device_name=self.context.device)
        parts = client.map(partial, range(self.parts), pure=False)
        while len(parts) > 1:
            pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
            parts = [client.submit(groupby_data.combined, *pair, pure=False) for pair in pairs]
        self._expected = client.submit(groupby_data.dense_figures, parts[0], pure=False).result()

    def prepare(self) -> None:
        """The same numbers in every repetition, as in dask-cuda: on the workers, or still to be drawn."""
        self.teardown()
        self._round += 1
        meta = groupby_data.chunk(0, 1, 1, self.context.device)
        if self.params["generate"]:
            self._data = frames.generated(groupby_data.chunk, range(self.parts), self._arguments, meta)
            return
        parts = [(groupby_data.chunk, number, *self._arguments) for number in range(self.parts)]
        self._data = frames.settled(self.context, f"groupby-{self._token}-{self._round}", parts, meta)

    def lazy(self) -> Any:
        """The aggregation."""
        grouped = self._data.groupby("key", sort=bool(self.params["sort"]))
        several = int(self.params["split_out"]) > 1
        return grouped.agg(
            {"int64": ["max", "count"], "float64": "mean"},
            split_out=int(self.params["split_out"]),
            split_every=int(self.params["split_every"]),
            **(dask_compat.task_shuffle(grouped.agg) if several else {}),
        )

    def once(self) -> Tuple[float, List[groupby_data.Figures]]:
        """Build the graph, persist, wait."""
        client = self.context.client
        start = time.perf_counter()
        held = client.persist(self.lazy())
        distributed.wait(held)
        device.synchronize_workers(client, self.context.device)
        seconds = time.perf_counter() - start
        count = functools.partial(groupby_data.grouped_figures, device_name=self.context.device)
        return seconds, client.gather(client.map(count, distributed.futures_of(held), pure=False))

    def check(self, answer: List[groupby_data.Figures]) -> Answer:
        """Every figure exactly."""
        found = groupby_data.added_up(answer)
        names = ("groups", "rows", "keys", "maxima", "sums")
        details = {"found": dict(zip(names, found)), "expected": dict(zip(names, self._expected))}
        return Answer("ok" if found == self._expected else "wrong", details)

    def teardown(self) -> None:
        """Drop the frame."""
        self._data = None
