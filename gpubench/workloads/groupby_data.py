"""The frame of dask-cuda's groupby benchmark, and what grouping it must give.

Source: ``dask_cuda/benchmarks/local_cudf_groupby.py``. All functions run in the workers.
"""

from typing import Any, List, Tuple

from gpubench.workloads.device import array_module, frame_module

WRAP = 2**64

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
    maxima = xp.full(keys, -1, dtype="int64")
    xp.maximum.at(maxima, places, integers)
    sums = xp.bincount(places, weights=floats, minlength=keys).astype("int64")
    return xp.bincount(places, minlength=keys), maxima, sums


def combined(one: Dense, other: Any = None) -> Dense:
    """Of two chunks, or of one that is left over."""
    if other is None:
        return one
    higher = one[1] * (one[1] >= other[1]) + other[1] * (one[1] < other[1])
    return one[0] + other[0], higher, one[2] + other[2]


def dense_figures(whole: Dense) -> Figures:
    """The figures that grouping must give."""
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


def added_up(parts: List[Figures]) -> Figures:
    """Figures of the whole from those of its parts."""
    return [sum(column) % WRAP for column in zip(*parts)]
