"""Inner join of two frames on an unsorted key: dask-cuda's ``local_cudf_merge``."""

import functools
import time
import uuid
from typing import Any, Dict, List, Tuple

import distributed

from gpubench.workloads import dask_compat, device, explicit_comms, frames, merge_data
from gpubench.workloads.base import Answer, WorkloadContext
from gpubench.workloads.noop import LazyMeasurement

COLUMN_BYTES = 8
COLUMNS = 2
BROADCAST = {"default": None, "shuffle": False, "broadcast": True}

Joined = Tuple[List[merge_data.Figures], List[List[int]]]
"""Figures of the joined frame's partitions; where it was indexed by key, their ranges of keys."""


class Merge(LazyMeasurement):
    """Partitions of both frames in fixed places; each join starts from frames that have no copies yet."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._token = uuid.uuid4().hex[:8]
        self._round = 0
        self._base: Any = None
        self._other: Any = None
        self._originals: Dict[str, List[Any]] = {}
        self._expected: merge_data.Figures = []
        self._spread: List[List[int]] = []
        workers = len(context.workers)
        self.rows = int(params["rows_per_worker"])
        self.base_chunks = int(params["base_chunks"]) or workers
        self.other_chunks = int(params["other_chunks"]) or workers
        self.frac_match = float(params["frac_match"])
        if self.rows < max(self.base_chunks, self.other_chunks):
            raise ValueError(
                f"merge needs at least as many rows per chunk as chunks: rows_per_worker {self.rows}, "
                f"chunks {self.base_chunks} and {self.other_chunks}"
            )

    @property
    def nominal_bytes(self) -> int:
        """Rows × item sizes of both frames."""
        return (self.base_chunks + self.other_chunks) * self.rows * COLUMNS * COLUMN_BYTES

    @property
    def least_moved_bytes(self) -> int:
        """One row of every matching pair whose two rows lie on different workers (Dask moves rows whole).

        None with explicit comms, which talk past the transfer log.
        """
        if self.backend == explicit_comms.BACKEND:
            return 0
        base = dask_compat.partition_holders(self.context.client, self._base)
        other = dask_compat.partition_holders(self.context.client, self._other)
        pairs = sum(
            count for here, counts in zip(other, self._spread) for there, count in zip(base, counts) if not here & there
        )
        return pairs * COLUMNS * COLUMN_BYTES

    def setup(self) -> None:
        """Compute what the join must give, in the workers and without joining.

        Raises:
            UnavailableError: explicit comms are asked for, and the image's dask-cuda has none.
        """
        if self.backend == explicit_comms.BACKEND:
            explicit_comms.load()
        expected = functools.partial(
            merge_data.expected_figures,
            rows=self.rows,
            base_chunks=self.base_chunks,
            other_chunks=self.other_chunks,
            frac_match=self.frac_match,
            scattered=bool(self.params["shuffle"]),
            device=self.context.device,
        )
        parts = self.context.client.gather(self.context.client.map(expected, range(self.other_chunks), pure=False))
        self._expected = merge_data.added_up([figures for figures, _ in parts])
        self._spread = [spread for _, spread in parts]

    def prepare(self) -> None:
        """Make both frames anew: no worker has a copy of their partitions."""
        self._base = self._other = None
        self._round += 1
        generate: Any = merge_data.base_chunk
        divisions: Tuple[int, ...] = ()
        if self.params["shuffle"]:
            generate, divisions = merge_data.base_partition, tuple(range(self.base_chunks + 1))
        self._base = self._frame("base", generate, (), self.base_chunks, divisions)
        self._other = self._frame("other", merge_data.other_chunk, (self.frac_match,), self.other_chunks)
        distributed.wait([self._base, self._other])

    def _frame(
        self, name: str, generate: Any, extra: Tuple[Any, ...], chunks: int, divisions: Tuple[Any, ...] = ()
    ) -> Any:
        device_name = self.context.device
        parts = [(generate, number, self.rows, chunks, *extra, device_name) for number in range(chunks)]
        meta = generate(0, 4, 1, *extra, device_name)
        if self.keeps_originals:  # both frames are the same in all repetitions
            if name not in self._originals:
                self._originals[name] = frames.placed(self.context, f"{name}-{self._token}-original", parts)
            parts = [(merge_data.copied, original) for original in self._originals[name]]
        return frames.begun(self.context, f"{name}-{self._token}-{self._round}", parts, meta, divisions)

    def lazy(self) -> Any:
        """The join, and the index where one is asked for: that of the joined frame, as in dask-cuda."""
        joined = self._base.merge(
            self._other,
            on=["key"],
            how="inner",
            broadcast=BROADCAST[self.params["join"]],
            **dask_compat.task_shuffle(self._base.merge),
        )
        if self.params["set_index"]:
            return joined.set_index("key", **dask_compat.task_shuffle(joined.set_index))
        return joined

    def once(self) -> Tuple[float, Joined]:
        """Build the graph, persist, wait, as dask-cuda does; figures of the joined frame are taken after the clock."""
        client = self.context.client
        start = time.perf_counter()
        if self.backend == explicit_comms.BACKEND:
            futures = explicit_comms.persist(client, self.lazy)
        else:
            futures = distributed.futures_of(client.persist(self.lazy()))
        distributed.wait(futures)
        device.synchronize_workers(client, self.context.device)
        seconds = time.perf_counter() - start
        figures = functools.partial(merge_data.joined_figures, device=self.context.device)
        parts = client.gather(client.map(figures, futures, pure=False))
        ranges = client.map(merge_data.key_range, futures, pure=False) if self.params["set_index"] else []
        return seconds, (parts, client.gather(ranges))

    def check(self, answer: Joined) -> Answer:
        """Rows by formula, sums by looking up; an index makes partitions that are sorted and don't overlap."""
        parts, ranges = answer
        found = merge_data.added_up(parts)
        rows = merge_data.joined_rows(self.rows, self.base_chunks, self.other_chunks, self.frac_match)
        is_ok = found == self._expected and found[0] == rows
        details = {"rows": found[0], "expected_rows": rows, "sums": found[1:], "expected_sums": self._expected[1:]}
        if self.params["set_index"]:
            apart = merge_data.are_apart(ranges)
            details["partitions_apart"] = apart
            is_ok = is_ok and apart and len(ranges) == len(parts)
        return Answer("ok" if is_ok else "wrong", details)

    def teardown(self) -> None:
        """Drop both frames, and what they were copied from."""
        self._base = self._other = None
        self._originals = {}
