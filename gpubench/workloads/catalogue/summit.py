"""What Summit's GTC 2020 benchmark times on dataframes that it reads from CSV files."""

from typing import Any, Dict, Mapping

from gpubench.workloads.catalogue.entry import BOTH_DEVICES, Param, Shape, Workload

TEXT_BYTES = 17
"""A float in the file, with its comma; 8 bytes in memory."""


def _held(copies: float, params: Mapping[str, Any], shape: Shape) -> int:
    """A worker's share of ``copies`` left tables, and one chunk per thread as text and as numbers (half of that)."""
    rows, width = int(params["rows"]), int(params["columns"]) + 2
    chunk = min(int(params["chunk"]), rows * width * TEXT_BYTES)
    return int(copies * rows * width * 8 / shape.workers + 1.5 * chunk * shape.threads_per_worker)


def _read_held(params: Mapping[str, Any], shape: Shape) -> int:
    return _held(1.0, params, shape)


def _merge_held(params: Mapping[str, Any], shape: Shape) -> int:
    # Both tables (the right one is a tenth), both of them shuffled, and a result of a tenth with twice the columns.
    return _held(2.4, params, shape)


SHARED: Dict[str, Param] = {
    "rows": Param("count", 2000, "rows of the left table; the right one has a tenth", original="1G = 194000 rows"),
    "columns": Param("count", 260, "float columns of each table, 260 at most", original="10 prefixes × 26 letters"),
    "ids": Param(
        "count", 1000, "mean of the Poisson distribution that ids are drawn from", original="num_ids=1000 (id_lam)"
    ),
    "chunk": Param("size", 64 * 10**6, "bytes of the file per partition", original="--read_chunk_mb 1024"),
    "result": Param(
        "choice",
        "compute",
        "bring the result to the client, or leave it with the workers",
        choices=("compute", "persist"),
        original="--persist_instead_of_compute",
    ),
    "directory": Param("path", "", "where the files are written: seen by all workers; the run's own if empty"),
}
PARTITIONS = Param(
    "count", 0, "partitions of each table, made before the clock; 0: as read", original="--num_partitions"
)


def _workload(name: str, factory: str, **facts: Any) -> Workload:
    return Workload(
        name=name,
        factory=f"csv_frames:{factory}",
        family="dataframe",
        scaling="strong",
        backends=("dask",),
        devices=BOTH_DEVICES,
        graph="timed",
        grows=(("rows", 1.0), ("chunk", 1.0)),
        **facts,
    )


_SOURCE = "Summit GTC 2020 cudf_benchmarking.py"
_SHARE = "rows × (columns + 2) × 8 B / workers: {}; 1.5 chunks per thread"

WORKLOADS = (
    _workload(
        "csv-read",
        "CsvRead",
        source=f"{_SOURCE} read_csv",
        params={
            **SHARED,
            "result": Param(
                "choice",
                "persist",
                "keep the frame in the workers, or only count its rows",
                choices=("compute", "persist"),
                original="--persist_instead_of_compute",
            ),
        },
        timed="building the graph of reading the left table's file, and persisting it, or counting its rows; waiting",
        counted="rows × (columns + 2) × 8, the left table in memory",
        oracle="exact row count; with `persist` exact sums of row numbers and of all floats too, from the generator",
        held=_read_held,
        held_text=_SHARE.format("the left table"),
    ),
    _workload(
        "nunique",
        "NUnique",
        source=f"{_SOURCE} groupby, unique ids",
        params={**SHARED, "partitions": PARTITIONS},
        timed="building the graph of id.nunique() of a frame that lies on the workers, computing or persisting it",
        counted="rows × (columns + 2) × 8, the left table in memory",
        oracle="exactly as many ids as the generator drew",
        held=_read_held,
        held_text=_SHARE.format("the left table"),
    ),
    _workload(
        "frame-groupby",
        "FrameGroupby",
        source=f"{_SOURCE} groupby",
        params={**SHARED, "partitions": PARTITIONS},
        timed="building the graph of min, max, mean and count of all columns by id, computing or persisting it",
        counted="rows × (columns + 2) × 8, the left table in memory",
        oracle="ids, counts, minima and maxima exactly, means to 1e-9, from the generator",
        held=_read_held,
        held_text=_SHARE.format("the left table"),
    ),
    _workload(
        "index-merge",
        "IndexMerge",
        source=f"{_SOURCE} join-indexed",
        params={**SHARED, "partitions": PARTITIONS},
        timed="building the graph of the inner join of both tables on their index, computing or persisting it",
        counted="(1.1 × rows) × (columns + 2) × 8: both tables in memory",
        oracle="exact row count, exact sums of row numbers, of all floats and of products of paired ones, from the "
        "generator",
        held=_merge_held,
        held_text="2.4 × " + _SHARE.format("both tables, both shuffled, the result"),
    ),
)
