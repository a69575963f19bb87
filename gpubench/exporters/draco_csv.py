"""A campaign as ``multi-node-merge.csv`` and ``multi-node-transpose.csv``, with the columns of dask-cuda-benchmarks.

What the original gets wrong is put right: ``wallclock_mean`` and ``wallclock_std`` of the transpose table are seconds
(there they hold figures of the throughput). What is odd but means something is kept: ``throughput_mean`` is the
harmonic mean, and ``throughput_std`` its standard error by the delta method, ``sqrt(var(1/x) / (n mean(1/x)^4))``.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from gpubench.model.text import as_text

_SHARED = ("devices", "device_memory_limit", "worker_threads", "rmm_pool", "tcp", "ib", "nvlink", "nreps")
_RATES = ("throughput_mean", "throughput_std")
MERGE = (
    *("date", "num_workers", "backend", "ucx_version", "wallclock", "data_processed"),
    *("base_chunks", "other_chunks", "rows_per_chunk", "ignore_size", "frac_match", *_SHARED, *_RATES),
)
TRANSPOSE = (
    *("date", "num_workers", "ucx_version", "wallclock", "data_processed", "user_size", "user_second_size"),
    *("user_chunk_size", "ignore_size", *_SHARED, *_RATES, "wallclock_mean", "wallclock_std"),
)
"""The columns, in the original's order. What we don't record as it does stays empty."""

_CELL = ("nodes", "workers_per_node", "threads_per_worker", "backend", "params", "variant")


def tables(frame: pl.DataFrame, created_at: str) -> tuple[bytes, bytes, dict[str, int]]:
    """The merge table, the transpose table, and how many samples of which other workloads have no place in either.

    Args:
        frame: the merged samples of a campaign; those of runs that are ok, without warm-ups, are used.
        created_at: when it was planned, which is its date.
    """
    good = frame.filter(~pl.col("warmup") & (pl.col("run_status") == "ok") & (pl.col("workload_status") == "ok"))
    date = f"{created_at[:10]}T00:00:00"
    merges = [_merge(*one) for one in _groups(good, "merge", date)]
    transposes = [_transpose(*one) for one in _groups(good.filter(pl.col("backend") == "dask"), "transpose-sum", date)]
    rest = (
        good.filter(~pl.col("workload").is_in(["merge", "transpose-sum"])).group_by("workload").len().sort("workload")
    )
    return _csv(MERGE, merges), _csv(TRANSPOSE, transposes), dict(rest.iter_rows())


def _groups(
    frame: pl.DataFrame, workload: str, date: str
) -> Iterable[tuple[dict[str, Any], Mapping[str, Any], Sequence[float]]]:
    """Per row: what both tables have, the parameters, and the seconds."""
    found = frame.filter(pl.col("workload") == workload).sort("run", "rep")
    grouped = found.group_by(*_CELL, maintain_order=True).agg("wall_s", pl.col("bytes").first())
    for row in grouped.sort("nodes", "workers_per_node", "backend", "variant").iter_rows(named=True):
        workers, seconds = row["nodes"] * row["workers_per_node"], np.asarray(row["wall_s"])
        per_rate = seconds * workers * 1e9 / row["bytes"]
        error = np.sqrt(per_rate.var(ddof=1) / (len(seconds) * per_rate.mean() ** 4)) if len(seconds) > 1 else math.nan
        shared = {
            "date": date,
            "num_workers": workers,
            "backend": row["backend"],
            "ucx_version": f"ucx-{row['variant'].removeprefix('ucx-')}",
            "wallclock": float(seconds.mean()),
            "data_processed": float(row["bytes"]),
            "worker_threads": float(row["threads_per_worker"]),
            "nreps": float(len(seconds)),
            "throughput_mean": float(1 / per_rate.mean()),
            "throughput_std": float(error),
        }
        yield shared, json.loads(row["params"]), row["wall_s"]


def _merge(shared: dict[str, Any], params: Mapping[str, Any], _seconds: Sequence[float]) -> dict[str, Any]:
    chunks = {name: float(params.get(name) or shared["num_workers"]) for name in ("base_chunks", "other_chunks")}
    rows = {"rows_per_chunk": float(params["rows_per_worker"]), "frac_match": params["frac_match"]}
    return {**shared, **chunks, **rows}


def _transpose(shared: dict[str, Any], params: Mapping[str, Any], seconds: Sequence[float]) -> dict[str, Any]:
    spread = float(np.std(seconds, ddof=1)) if len(seconds) > 1 else math.nan
    clock = {"wallclock_mean": shared["wallclock"], "wallclock_std": spread}
    return {**shared, **clock, "user_size": float(params["size"]), "user_chunk_size": float(params["chunk"])}


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    for row in rows:
        lines.writerow([_cell(row.get(column)) for column in columns])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return as_text(value)
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value
