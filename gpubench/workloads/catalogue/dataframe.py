"""Joins and other work on dataframes, as dask-cuda's benchmarks do it."""

from typing import Any, Mapping

from gpubench.workloads.catalogue.entry import BOTH_DEVICES, Param, Shape, Workload

ROW_BYTES = 16
"""Two int64 columns."""


def _merge_held(params: Mapping[str, Any], _shape: Shape) -> int:
    # Both inputs, both of them shuffled (the inputs stay), and a result of three columns, hardly larger than an input.
    return int(params["rows_per_worker"]) * ROW_BYTES * 6


WORKLOADS = (
    Workload(
        name="merge",
        factory="merge:Merge",
        family="dataframe",
        source="dask_cuda.benchmarks.local_cudf_merge",
        scaling="weak",
        backends=("dask",),
        devices=BOTH_DEVICES,
        params={
            "rows_per_worker": Param(
                "count", 200_000, "rows of each of the two frames per worker", original="-c 1_000_000"
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
        },
        timed="building the graph of the inner join on `key`, persisting it, waiting",
        graph="timed",
        counted="rows × item sizes of both input frames (two int64 columns each)",
        oracle="exact row count, and exact sums over keys, both payloads and their products, from the generator alone",
        held=_merge_held,
        held_text="6 × rows_per_worker × 16 B: both frames, both shuffled, the result",
        grows=(("rows_per_worker", 1.0),),
    ),
)
