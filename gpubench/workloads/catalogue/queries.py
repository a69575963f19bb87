"""Analytical queries over several tables."""

from typing import Any, Mapping

from gpubench.workloads.catalogue.entry import Param, Shape, Workload

BYTES_OF_SCALE_1 = 10**9
"""The tables as text; the columns that a query reads are less than half of it in memory."""


def _held(params: Mapping[str, Any], shape: Shape) -> int:
    # What is read, its shuffled copy and the joined rows; of files given by path nothing is known.
    return 0 if params["path"] else int(1.5 * params["scale"] * BYTES_OF_SCALE_1 / shape.workers)


def _fault(_backend: str, params: Mapping[str, Any]) -> str:
    if not all(1 <= int(number) <= 22 for number in (params["query"], *params["queries"])):
        return "query is a number from 1 to 22"
    if len(set(params["queries"])) < len(params["queries"]):
        return "queries names a query twice"
    if not params["path"] and int(params["files"]) < 1:
        return "files is at least 1"
    return "" if 0.001 <= params["scale"] <= 100_000 else "scale is at least 0.001 and at most 100000"


WORKLOADS = (
    Workload(
        name="pdsh",
        factory="pdsh:Pdsh",
        family="queries",
        source="TPC-H; cudf_polars.streaming.benchmarks.pdsh",
        scaling="strong",
        backends=("dask", "cudf-polars", "polars"),
        params={
            "query": Param("count", 1, "which of the 22 queries", original="pdsh 1"),
            "queries": Param(
                "counts",
                [],
                "several queries instead, as one cell: a sample is the geometric mean of their seconds",
                original="pdsh 1,3,6",
            ),
            "scale": Param("number", 0.1, "scale factor: about so many GB of text", original="--scale"),
            "files": Param("count", 4, "files of table lineitem, the others have fewer: partitions"),
            "directory": Param(
                "path", "", "where the generated tables are kept, seen by all workers; the campaign's `data` if empty"
            ),
            "path": Param(
                "path",
                "",
                "your own tables instead, as <table>/*.parquet with float64 and timestamps; of this scale",
                original="--path",
            ),
        },
        timed="building the query over Parquet files, reading, computing it, bringing the answer to the client",
        counted="bytes on disk of the tables that the query names; of several queries the mean",
        oracle="rows, their order and all columns exactly, floats to 1e-9, as polars answers the same query in SQL on "
        "the same files; as pandas, where the image has no polars or polars is measured",
        held=_held,
        held_text="scale × 1.5 GB / workers: the columns read, shuffled, joined",
        grows=(("scale", 1.0),),
        needs={
            "dask": ("tpchgen-cli", "pyarrow"),
            "cudf-polars": ("tpchgen-cli", "pyarrow", "cudf-polars"),
            "polars": ("tpchgen-cli", "pyarrow", "polars"),
        },
        fault=_fault,
    ),
)
