"""Joins and other work on dataframes, as dask-cuda's benchmarks do it."""

from typing import Any, Mapping

from gpubench.node.workloads.catalogue.entry import Param, Shape, Workload

ROW_BYTES = 16
"""Two int64 columns."""


def _per_worker(chunks: int, shape: Shape) -> int:
    """Chunks that the fullest worker holds, of so many, 0 for one each."""
    return -(-(chunks or shape.workers) // shape.workers)


def _merge_held(params: Mapping[str, Any], shape: Shape) -> int:
    # Both inputs, both of them shuffled (the inputs stay), and a result of three columns, hardly larger than an input;
    # the result twice more where it is sorted.
    chunks = sum(_per_worker(int(params[side]), shape) for side in ("base_chunks", "other_chunks"))
    return int(params["rows_per_worker"]) * ROW_BYTES * chunks * (4 if params["set_index"] else 3)


def _groupby_held(params: Mapping[str, Any], shape: Shape) -> int:
    # The input, or the chunks in work where it is drawn inside the clock; every group several times on one worker.
    rows, parts = int(params["rows_per_chunk"]), int(params["in_parts"])
    chunks = shape.threads_per_worker if params["generate"] else _per_worker(parts, shape)
    groups = float(params["unique_ratio"]) * rows * parts
    return int(24 * rows * (chunks + shape.threads_per_worker) + 32 * groups * (2 + int(params["split_every"])))


def _parquet_held(params: Mapping[str, Any], shape: Shape) -> int:
    # With a path given, what its files hold isn't known before they are read.
    if params["path"]:
        return 0
    return 2 * ROW_BYTES * int(params["rows_per_file"]) * _per_worker(int(params["files"]), shape)


WORKLOADS = (
    Workload(
        name="merge",
        factory="merge:Merge",
        family="dataframe",
        source="dask_cuda.benchmarks.local_cudf_merge",
        scaling="weak",
        backends=("dask", "explicit-comms"),
        params={
            "rows_per_worker": Param(
                "count",
                200_000,
                "rows of each of the two frames per worker; with chunks given, rows per chunk",
                original="-c 1_000_000",
            ),
            "base_chunks": Param(
                "count", 0, "chunks (partitions) of the first frame; 0: one per worker", original="--base-chunks"
            ),
            "other_chunks": Param(
                "count", 0, "chunks (partitions) of the second frame; 0: one per worker", original="--other-chunks"
            ),
            "frac_match": Param(
                "fraction", 0.3, "share of the second frame's rows that find a partner", original="--frac-match 0.3"
            ),
            "join": Param(
                "choice",
                "default",
                "how Dask joins: its own choice, always by shuffling both sides, or by sending one side everywhere",
                choices=("default", "shuffle", "broadcast"),
                original="--shuffle-join, --broadcast-join",
            ),
            "shuffle": Param(
                "flag",
                True,
                "scatter the first frame's keys over its partitions before the clock",
                original="--no-shuffle turns it off",
            ),
            "set_index": Param("flag", False, "sort the joined frame by key, inside the clock", original="--set-index"),
        },
        timed="building the graph of the inner join on `key`, persisting it, waiting",
        counted="rows × item sizes of both input frames (two int64 columns each)",
        oracle="exact row count, and exact sums over keys, both payloads and their products, from the generator alone; "
        "sorted partitions that don't overlap",
        held=_merge_held,
        held_text="rows_per_worker × 16 B × chunks of both sides per worker × 3 (as they are, shuffled, the result), "
        "× 4 with set_index",
        grows=(("rows_per_worker", 1.0),),
        needs={"explicit-comms": ("dask-cuda<26.6",)},
        unlogged=lambda backend, _params: backend == "explicit-comms",
    ),
    Workload(
        name="shuffle",
        factory="frame_shuffle:Shuffle",
        family="dataframe",
        source="dask_cuda.benchmarks.local_cudf_shuffle",
        scaling="strong",
        params={
            "in_parts": Param("count", 16, "partitions, before and after", original="--in-parts 100"),
            "partition_size": Param("size", 1 << 20, "bytes of one partition", original="--partition-size 1 MiB"),
            "method": Param(
                "choice",
                "tasks",
                "how rows get to their partition: by tasks, from worker to worker past the scheduler, or through files",
                choices=("tasks", "p2p", "disk"),
                original="tasks",
            ),
            "ignore_index": Param("flag", False, "the index may be lost on the way", original="--ignore-index"),
        },
        timed="persisting the shuffle of a frame of one float64 column by that column, waiting",
        graph="before the clock",
        counted="in_parts × partition_size, twice that (the index) without ignore_index",
        oracle="exact rows, number of keys and sum; all rows of each key in one partition",
        held=lambda params, shape: 6 * int(params["partition_size"]) * _per_worker(int(params["in_parts"]), shape),
        held_text="2 × partition_size × partitions per worker × 3 (as they are, grouped, the result): data and index",
        grows=(("partition_size", 1.0),),
        unlogged=lambda _backend, params: params["method"] != "tasks",
    ),
    Workload(
        name="groupby",
        factory="groupby:GroupBy",
        family="dataframe",
        source="dask_cuda.benchmarks.local_cudf_groupby",
        scaling="strong",
        params={
            "in_parts": Param("count", 8, "partitions of the input", original="--in-parts 100"),
            "rows_per_chunk": Param("count", 100_000, "rows of one partition", original="-c 1_000_000"),
            "unique_ratio": Param("fraction", 0.01, "different keys per row of the input", original="--unique-ratio"),
            "sort": Param("flag", False, "sort the groups", original="--sort"),
            "split_out": Param("count", 1, "partitions of the result", original="--split_out 1"),
            "split_every": Param("count", 8, "partial results that are put together at once", original="8"),
            "generate": Param("flag", False, "draw the frame inside the clock", original="always inside"),
        },
        timed="building the graph of max and count of one column and mean of another by key, persisting it, waiting",
        counted="rows × 24 (int64 key, int64, float64)",
        oracle="exact number of groups, and exact sums of rows, maxima and sums weighted by key, counted without "
        "grouping",
        held=_groupby_held,
        held_text="24 B × rows_per_chunk × (chunks per worker, unless drawn inside the clock, and one per thread), "
        "32 B × groups × (2 + split_every)",
        grows=(("rows_per_chunk", 1.0),),
    ),
    Workload(
        name="read-parquet",
        factory="read_parquet:ReadParquet",
        family="dataframe",
        source="dask_cuda.benchmarks.read_parquet",
        scaling="strong",
        params={
            "path": Param(
                "path", "", "folder of *.parquet files that every worker sees; empty: write some", original="PATH"
            ),
            "files": Param("count", 4, "files to write", original="--file-count (to read)"),
            "rows_per_file": Param("count", 200_000, "rows of each, one int64 and one float64", original="none"),
        },
        timed="reading the files' metadata and all columns into memory (usually from the page cache), waiting",
        counted="bytes of the files on disk",
        oracle="exact rows, sums of the numeric columns as pyarrow reads them without Dask",
        held=_parquet_held,
        held_text="2 × 16 B × rows_per_file × files per worker; with a path given not known",
        grows=(("rows_per_file", 1.0),),
        needs={"dask": ("pyarrow",)},
    ),
)
