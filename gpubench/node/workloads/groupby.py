"""Groupby with three aggregates: dask-cuda's ``local_cudf_groupby``.

Source: ``dask_cuda/benchmarks/local_cudf_groupby.py``. All functions up to the class run in the workers.
"""

import functools
from typing import Any, Callable, List, Tuple

from gpubench.node.workloads import dask_compat, frames
from gpubench.node.workloads.base import WRAP, Answer, WorkloadContext, added_up, judged
from gpubench.node.workloads.device import array_module, frame_module
from gpubench.node.workloads.lazy import LazyMeasurement

Figures = List[int]
"""Groups, rows, and modulo 2⁶⁴ the sums over groups of key × rows, key × maximum and key × sum, keys counted from 1: a
figure that lands at another group changes them. All are whole numbers."""

Dense = Tuple[Any, Any, Any]
"""Rows, maximum and sum of every key."""


def chunk(number: int, rows: int, keys: int, device_name: str) -> Any:
    """Chunk ``number``: a key below ``keys``, and the numbers below ``rows`` in some order as int64 and as float64."""
    xp = array_module(device_name)
    state = xp.random.RandomState(number * 1000)
    columns = {
        "key": state.randint(0, keys, size=rows, dtype="int64"),
        "int64": state.permutation(xp.arange(rows, dtype="int64")),
        "float64": state.permutation(xp.arange(rows, dtype="float64")),
    }
    return frame_module(device_name).DataFrame(columns)


def dense(number: int, rows: int, keys: int, device_name: str) -> Dense:
    """Every group of one chunk, without grouping; −1 is the maximum of none."""
    xp = array_module(device_name)
    frame = chunk(number, rows, keys, device_name)
    places, integers, floats = (xp.asarray(frame[name]) for name in ("key", "int64", "float64"))
    # The last of each key, in the order of key and integer: cupy before 14.1 has no maximum.at of int64.
    order = xp.argsort(places * rows + integers)
    ordered = places[order]
    last = xp.concatenate((ordered[1:] != ordered[:-1], xp.ones(1, dtype=bool)))
    maxima = xp.full(keys, -1, dtype="int64")
    maxima[ordered[last]] = integers[order][last]
    sums = xp.bincount(places, weights=floats, minlength=keys).astype("int64")
    return xp.bincount(places, minlength=keys), maxima, sums


def combined(first: Dense, second: Any = None) -> Dense:
    """Of two chunks, or of one that is left over."""
    if second is None:
        return first
    higher = first[1] * (first[1] >= second[1]) + second[1] * (first[1] < second[1])
    return first[0] + second[0], higher, first[2] + second[2]


def dense_figures(whole: Dense) -> Figures:
    counts, maxima, sums = whole
    (places,) = counts.nonzero()
    return _figures(places, counts[places], maxima[places], sums[places])


def grouped_figures(grouped: Any, device_name: str) -> Figures:
    """The figures of one partition of the result; a sum is its mean times its rows, rounded: it is a whole number."""
    xp = array_module(device_name)
    counts = xp.asarray(grouped["int64", "count"])
    sums = xp.rint(xp.asarray(grouped["float64", "mean"]) * counts).astype("int64")
    return _figures(xp.asarray(grouped.index), counts, xp.asarray(grouped["int64", "max"]), sums)


def _figures(keys: Any, counts: Any, maxima: Any, sums: Any) -> Figures:
    weights = keys + 1
    totals = (counts.sum(), (weights * counts).sum(), (weights * maxima).sum(), (weights * sums).sum())
    return [len(keys), *(int(total) % WRAP for total in totals)]


ROW_BYTES = 24


class GroupBy(LazyMeasurement):
    """Maximum and count of one column, mean of another, by an integer key."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._expected: Figures = []
        self.parts, self.rows = int(params["in_parts"]), int(params["rows_per_chunk"])
        if not self.parts or not self.rows:
            raise ValueError("groupby needs a chunk, and a row in it")
        self.keys = max(1, int(float(params["unique_ratio"]) * self.parts * self.rows))
        self._arguments = (self.rows, self.keys, context.device)

    @property
    def nominal_bytes(self) -> int:
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
        partial = functools.partial(dense, rows=self.rows, keys=self.keys, device_name=self.context.device)
        parts = client.map(partial, range(self.parts), pure=False)
        while len(parts) > 1:
            pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
            parts = [client.submit(combined, *pair, pure=False) for pair in pairs]
        self._expected = client.submit(dense_figures, parts[0], pure=False).result()

    def prepare(self) -> None:
        """The same numbers in every repetition, as in dask-cuda: on the workers, or still to be drawn."""
        self.teardown()
        self._round += 1
        meta = chunk(0, 1, 1, self.context.device)
        if self.params["generate"]:
            self._data = frames.generated(chunk, range(self.parts), self._arguments, meta)
            return
        parts = [(chunk, number, *self._arguments) for number in range(self.parts)]
        self._data = frames.settled(self.context, self.name, parts, meta)

    def lazy(self) -> Any:
        grouped = self._data.groupby("key", sort=bool(self.params["sort"]))
        several = int(self.params["split_out"]) > 1
        return grouped.agg(
            {"int64": ["max", "count"], "float64": "mean"},
            split_out=int(self.params["split_out"]),
            split_every=int(self.params["split_every"]),
            **(dask_compat.task_shuffle(grouped.agg) if several else {}),
        )

    def figures_of(self) -> Callable[[Any], Figures]:
        return functools.partial(grouped_figures, device_name=self.context.device)

    def check(self, answer: List[Figures]) -> Answer:
        figures = added_up(answer)
        names = ("groups", "rows", "keys", "maxima", "sums")
        details = {"found": dict(zip(names, figures)), "expected": dict(zip(names, self._expected))}
        return judged(figures == self._expected, details)
