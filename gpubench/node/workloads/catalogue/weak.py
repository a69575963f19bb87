"""Weak scaling as dask-bench does it: seven tasks on an array and nine on a dataframe, sized by the workers' threads.

Source: ``modules/weakscaling.py`` of IsacPasianotto/dask-bench. Its array tasks work on an array that was never
persisted, so each of its times holds the drawing of random numbers; its dataframe tasks work on a persisted frame.
"""

import math
from typing import Any, Callable, Mapping, NamedTuple, Sequence, Tuple

from gpubench.node.workloads.catalogue.entry import Param, Shape, Workload

ITEM_BYTES = 8
COLUMNS = 6
ROW_BYTES = COLUMNS * ITEM_BYTES


def square(problem_size: int, threads: int) -> Tuple[int, int]:
    """Rows (and columns) of the array, and of one chunk: as many chunks as threads, up to what rounding leaves over."""
    side = int(problem_size * math.sqrt(threads))
    return side, max(1, int(side / math.sqrt(threads)))


def square_chunks(problem_size: int, threads: int) -> Tuple[int, ...]:
    """Lengths of the chunks along both axes."""
    side, chunk = square(problem_size, threads)
    return tuple(min(chunk, side - start) for start in range(0, side, chunk))


def _largest_share(problem_size: int, threads: int, workers: int) -> int:
    """Elements of the worker that holds the most, chunks dealt out row by row in equal contiguous shares."""
    lengths = square_chunks(problem_size, threads)
    shares = [0] * workers
    for position in range(len(lengths) ** 2):
        owner = position * workers // len(lengths) ** 2
        shares[owner] += lengths[position // len(lengths)] * lengths[position % len(lengths)]
    return max(shares)


def partition_starts(problem_size: int, threads: int) -> Tuple[int, ...]:
    """First row of each of the frame's two partitions per thread, and the number of rows; alike in length ± 1."""
    rows, parts = problem_size * threads, 2 * threads
    return tuple(number * rows // parts for number in range(parts + 1))


def _array_held(kept: float, worked: float) -> Callable[[Mapping[str, Any], Shape], int]:
    def held(params: Mapping[str, Any], shape: Shape) -> int:
        problem_size = int(params["problem_size"])
        share = _largest_share(problem_size, shape.threads, shape.workers)
        in_work = shape.threads_per_worker * square(problem_size, shape.threads)[1] ** 2
        arrays = kept + (params.get("mode") == "persisted")
        return int((share * arrays + in_work * worked) * ITEM_BYTES)

    return held


def _frame_held(kept: float, worked: float) -> Callable[[Mapping[str, Any], Shape], int]:
    def held(params: Mapping[str, Any], shape: Shape) -> int:
        rows = int(params["problem_size"]) * shape.threads_per_worker
        whole = int(params["problem_size"]) * shape.threads
        return int(((1 + kept) * rows + worked * whole) * ROW_BYTES)

    return held


_ARRAY_SIZE = Param(
    "count",
    2000,
    "rows of the array per √threads: rows = int(problem_size·√threads)",
    original="PROBLEM_SIZE_ARRAY=5000",
)
_FRAME_SIZE = Param("count", 3000, "rows of the frame per thread", original="PROBLEM_SIZE_DATAFRAMES=3000")
_ARRAY_MODE = Param(
    "choice",
    "as-published",
    "as-published: the input is drawn again inside the clock; persisted: it lies on the workers before",
    choices=("as-published", "persisted"),
    original="always drawn inside",
)
_FRAME_MODE = Param(
    "choice",
    "as-published",
    "the input lies on the workers before the clock in both: where Dask puts it (as-published), or in equal contiguous "
    "shares (persisted)",
    choices=("as-published", "persisted"),
    original="persisted, where Dask puts it",
)
_SHUFFLE = Param(
    "choice",
    "tasks",
    "how rows change workers: by tasks, or as Dask chooses, whose peer-to-peer way passes no transfer log",
    choices=("tasks", "default"),
    original="Dask's choice",
)
_EXACT = "element count, sum and two sums weighted by place, exactly those of the numbers drawn once more"
_ROWS_EXACT = "row count and three sums that mix columns and place, exactly those of the numbers drawn once more"
_MOMENTS = "; the mean within 6 standard deviations of 49 999.5"
_MEANS = "the same groups, and means to 1e-9, as counted and added up from the numbers drawn once more"
_STD = "equals the deviation from exact integer sums of the numbers drawn once more, to 1e-9"


class _Task(NamedTuple):
    """``kept`` are the arrays or frames that a worker holds while the task is timed, without the input; ``worked`` the
    copies of a chunk that a thread needs.
    """

    name: str
    original: str
    timed: str
    oracle: str
    kept: float
    worked: float


_ARRAYS: Sequence[_Task] = (
    _Task("create", "create random 2D-array", "x", _EXACT + _MOMENTS, 1, 2),
    _Task("blockwise", "block-wise operation", "x.map_blocks(+ 1)", _EXACT + " plus 1", 1, 3),
    _Task("access", "random access", "x[42, 314]", "equals the element drawn once more", 0, 2),
    _Task("std", "reduction operation (std)", "x.std()", _STD, 0, 4),
    _Task("std-axis", "reduction (std) along axis", "x.std(axis=0)", _STD + ", in every column", 0, 4),
    _Task(
        "elementwise",
        "elementwise computation",
        "sin(x)² + cos(x)²",
        "as many elements as x has, each within 1e-12 of 1",
        1,
        4,
    ),
    _Task("transpose", "sum the transpose", "x + x.T", _EXACT + ", and mirrored", 3, 3),
)
_FRAMES: Sequence[_Task] = (
    _Task("create", "create random dataframe", "from_dask_array(x)", _ROWS_EXACT + _MOMENTS, 0, 0),
    _Task("blockwise", "block-wise operation", "df.map_partitions(+ 1)", _ROWS_EXACT + " plus 1", 1, 0),
    _Task("access", "random access", "df.loc[42]", "one row, equal to that drawn once more", 0, 0),
    _Task("std", "reduction operation (std)", "df.std()", _STD + ", in every column", 1, 0),
    _Task("series-std", "series reduction operation (std)", "df['col_0'].std()", _STD, 1, 0),
    _Task("groupby-mean", "group-by operation", "df.groupby('col_1')['col_0'].mean()", _MEANS, 1, 1),
    _Task(
        "groupby-means",
        "group-by operation (2 columns)",
        "df.groupby('col_1')[['col_0', 'col_2']].mean() (the original's ['col_0', 'col_2'] is refused since pandas 2)",
        _MEANS,
        1,
        1,
    ),
    _Task(
        "groupby-apply",
        "group-by apply operation",
        "df.groupby('col_1').apply(+ 1)",
        _ROWS_EXACT + " plus 1, each below the key that it has",
        3,
        3,
    ),
    _Task("sort", "order data", "df.sort_values('col_1')", _ROWS_EXACT + ", ordered in and across partitions", 4, 0),
)
_PERSISTED = ("create", "blockwise", "elementwise", "transpose", "sort")
_SHUFFLES = ("groupby-apply", "sort")


def _ways(name: str, mode: Param) -> Mapping[str, Param]:
    """What can be set beside the size. Creating has no input that could lie anywhere."""
    ways = {} if name == "create" else {"mode": mode}
    return {**ways, "shuffle": _SHUFFLE} if name in _SHUFFLES else ways


def _workload(kind: str, task: _Task) -> Workload:
    name, original, timed, oracle, kept, worked = task
    is_array = kind == "array"
    ends = "persisting it, waiting" if name in _PERSISTED else "computing it, fetching the result"
    return Workload(
        name=f"weak-{kind}-{name}",
        factory=f"weak_{kind}s:{kind.title()}{''.join(word.title() for word in name.split('-'))}",
        family="weak scaling",
        source=f"dask-bench assess_{'arrays' if is_array else 'dataframes'}: {original}",
        scaling="weak",
        params={
            "problem_size": _ARRAY_SIZE if is_array else _FRAME_SIZE,
            **_ways(name, _ARRAY_MODE if is_array else _FRAME_MODE),
        },
        timed=f"building the graph of {timed}, {ends}",
        counted="8 (one element)" if name == "access" else "rows × columns × 8",
        oracle=oracle,
        held=_array_held(kept, worked) if is_array else _frame_held(kept, worked),
        held_text=f"{kept} (+ 1 persisted) × the largest share of the chunks of rows², rows = "
        f"int(problem_size·√threads); {worked} chunks per thread in work, each int(rows/√threads)²; × 8 B"
        if is_array
        else f"(problem_size × threads per worker × {1 + kept} + problem_size × threads × {worked}) × 48 B",
        grows=(("problem_size", 0.5 if is_array else 1.0),),
        unlogged=lambda _backend, params: params.get("shuffle", "tasks") != "tasks",
    )


WORKLOADS = (*(_workload("array", task) for task in _ARRAYS), *(_workload("frame", task) for task in _FRAMES))
