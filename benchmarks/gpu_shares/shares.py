"""What share of the copy bandwidth an array workload's bytes reached, run by run. Pure."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

ITEM_BYTES = 8
PASSES: Mapping[str, float] = {
    "transpose-sum": 4.0,  # x and x.T read, their sum written, and read to be added up
    "strided-sum": 2.5,  # x read, x + 1 written, every second row of that read: a stride of 2 leaves out no sector
}
"""How often a kernel of its own for each operation must read or write the array of size² float64."""


class Share(NamedTuple):
    """Of one workload under one variant: medians over the runs. Bandwidths in bytes a second."""

    variant: str
    workload: str
    seconds: float
    bandwidth: float
    copy: float
    share: float


def allowed_bytes(workload: str, params: Mapping[str, Any]) -> float:
    """Bytes that a repetition can't do without; 0 where nobody has counted them."""
    return PASSES.get(workload, 0.0) * int(params.get("size", 0)) ** 2 * ITEM_BYTES


def shares(samples: pl.DataFrame) -> list[Share]:
    """Each array workload against the copies of its own run; ``samples`` as in ``results.parquet``."""
    good = samples.filter(
        ~pl.col("warmup") & (pl.col("run_status") == "ok") & (pl.col("workload_status") == "ok")
        & (pl.col("answer") != "wrong")
    )  # fmt: skip
    means = good.group_by("variant", "run", "workload", "backend", "params").agg(
        pl.col("wall_s").mean(), pl.col("bytes").first()
    )
    copies: dict[str, float] = {}
    for _, run, workload, _, _, seconds, size in means.iter_rows():
        if workload == "copy":
            copies[run] = size / seconds
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    worked = means.filter(pl.col("backend") == "dask").sort("variant", "workload", "run")
    for variant, run, workload, _, params, seconds, _ in worked.iter_rows():
        size = allowed_bytes(workload, json.loads(params))
        if size and run in copies:
            found[variant, workload].append((seconds, size / seconds, copies[run]))
    rows = []
    for (variant, workload), runs in found.items():
        seconds, bandwidth, copy = (statistics.median(column) for column in zip(*runs, strict=True))
        share = statistics.median(one / bound for _, one, bound in runs)
        rows.append(Share(variant, workload, seconds, bandwidth, copy, share))
    return rows
