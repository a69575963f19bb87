"""Shuffle of a frame by its only column: dask-cuda's ``local_cudf_shuffle``."""

import functools
import importlib.util
from typing import Any, Callable, List

from gpubench.node.workloads import dask_compat, device, frames
from gpubench.node.workloads.base import Answer, UnavailableError, WorkloadContext, judged
from gpubench.node.workloads.lazy import LazyMeasurement

ITEM_BYTES = 8

Figures = List[int]
"""Of one output partition: rows, distinct keys, sum of keys, and 1 if each of its keys is there as often as it must."""


def partition(seed: int, rows: int, device_name: str) -> Any:
    """Every one of the keys 0, 1/rows, 2/rows, … once, in an order of its own: so all partitions have the same keys."""
    xp = device.array_module(device_name)
    keys = xp.random.RandomState(seed).permutation(xp.arange(rows, dtype="float64")) / rows
    return device.frame_module(device_name).DataFrame({"data": keys})


def figures(frame: Any, rows: int, copies: int, device_name: str) -> Figures:
    xp = device.array_module(device_name)
    numbers = xp.rint(xp.asarray(frame["data"]) * rows).astype("int64")
    distinct, counts = xp.unique(numbers, return_counts=True)
    return [len(numbers), len(distinct), int(xp.sum(numbers)), int(bool((counts == copies).all()))]


class Shuffle(LazyMeasurement):
    """dask-cuda draws keys at random; here every input partition holds the same ones, so that all rows of a key and
    where they must meet are known. They are hashed alike.
    """

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.parts = int(params["in_parts"])
        self.rows = int(params["partition_size"]) // ITEM_BYTES
        if not self.parts or not self.rows:
            raise ValueError(f"shuffle needs a partition, and a row of {ITEM_BYTES} bytes in it")

    @property
    def nominal_bytes(self) -> int:
        """The column's bytes, and the index's unless it may be lost."""
        return self.parts * self.rows * ITEM_BYTES * (1 if self.params["ignore_index"] else 2)

    @property
    def least_moved_bytes(self) -> int:
        """Each key is in every input partition, and must end in one: all move but those of the fullest worker.

        By tasks only: what moves peer to peer or through files isn't in the transfer log.
        """
        if self.params["method"] != "tasks":
            return 0
        return frames.fewest_away(self.context, self.parts) * self.rows * ITEM_BYTES

    @property
    def talks_past_log(self) -> bool:
        """Peer to peer, where each worker has a partition before and after: every one of them holds all keys."""
        return self.params["method"] == "p2p" and self.parts >= len(self.context.workers)

    def setup(self) -> None:
        """Nothing but asking whether the method can work here.

        Raises:
            UnavailableError: p2p without pyarrow; disk on several hosts, which don't see each other's files.
        """
        hosts = {worker.rpartition(":")[0] for worker in self.context.workers}
        if self.params["method"] == "p2p" and importlib.util.find_spec("pyarrow") is None:
            raise UnavailableError("shuffle by p2p needs pyarrow, and this image has none")
        if self.params["method"] == "disk" and len(hosts) > 1:
            raise UnavailableError(f"shuffle by disk passes files from worker to worker: one host, not {len(hosts)}")

    def prepare(self) -> None:
        """Other orders of the keys in every repetition; the graph."""
        self.teardown()
        self._round += 1
        seeds = [(self.context.seed + self._round * self.parts + number) % 2**32 for number in range(self.parts)]
        parts = [(partition, seed, self.rows, self.context.device) for seed in seeds]
        frame = frames.settled(self.context, self.name, parts, partition(0, 1, self.context.device)[:0])
        keyword = dask_compat.shuffle_keyword(frame.shuffle)
        ignore = bool(self.params["ignore_index"])
        self._data = frame.shuffle("data", ignore_index=ignore, **{keyword: self.params["method"]})

    def lazy(self) -> Any:
        return self._data

    def figures_of(self) -> Callable[[Any], Figures]:
        return functools.partial(figures, rows=self.rows, copies=self.parts, device_name=self.context.device)

    def check(self, answer: List[Figures]) -> Answer:
        """All rows are there, and each key's rows are together: as many distinct keys over all as there are keys."""
        rows, distinct, total, complete = (sum(column) for column in zip(*answer))
        expected = self.parts * self.rows * (self.rows - 1) // 2
        is_ok = (rows, distinct, total) == (self.parts * self.rows, self.rows, expected) and complete == len(answer)
        details = {"rows": rows, "expected_rows": self.parts * self.rows, "keys": distinct, "expected_keys": self.rows}
        details.update({"sum": total, "expected_sum": expected, "split_partitions": len(answer) - complete})
        return judged(is_ok, details)
