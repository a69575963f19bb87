"""Scaling of an import: its cells by the number of workers, as far as the source recorded that. Pure."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import polars as pl

from gpubench.importers.pairing import CELL, Key
from gpubench.stats.scaling import Rule, ScalingPoint
from gpubench.workloads.catalogue import CATALOGUE

UNKNOWN = "version not recorded"
GROWS = ("threads", "base_chunks", "other_chunks")
"""Parameters that follow the size of the cluster."""

_SIZE = ("nodes", "workers", "workers_per_node", "threads_per_worker", "params")


@dataclasses.dataclass(frozen=True)
class ImportedCurve:
    """One workload under one variant; ``measured`` counts threads as units, one per run or date."""

    key: Key
    variant: str
    rule: Rule
    measured: tuple[ScalingPoint, ...]


def curves(table: pl.DataFrame) -> list[ImportedCurve]:
    """Every cell apart from its size, by variant; rows of unknown size are in none."""
    runs: dict[tuple[Key, str], dict[int, dict[str, list[float]]]] = {}
    for row in table.filter(~pl.col("warmup")).sort("file", "line").iter_rows(named=True):
        size = units_of(row)
        if size is not None:
            by_size = runs.setdefault((_key(row), row["variant"] or UNKNOWN), {})
            by_size.setdefault(size, {}).setdefault(row["run"], []).append(row["wall_s"])
    return [
        ImportedCurve(
            key,
            variant,
            rule_of(str(dict(key)["workload"])),
            tuple(
                ScalingPoint(1, size, 1, tuple(math.log(math.fsum(one) / len(one)) for one in by_size[size].values()))
                for size in sorted(by_size)
            ),
        )
        for (key, variant), by_size in sorted(runs.items(), key=lambda item: (str(item[0][0]), item[0][1]))
    ]


def units_of(row: dict[str, Any]) -> int | None:
    """Worker threads of the whole cluster; None if they weren't recorded."""
    if row["workers"] is not None:
        return int(row["workers"]) * int(row["threads_per_worker"] or 1)
    threads = json.loads(row["params"]).get("threads")
    return int(threads) if isinstance(threads, int) else None


def _key(row: dict[str, Any]) -> Key:
    params = {name: value for name, value in json.loads(row["params"]).items() if name not in GROWS}
    known = [(name, row[name]) for name in CELL if name not in _SIZE and row[name] is not None]
    return (*known, ("params", json.dumps(params, sort_keys=True)))


def rule_of(workload: str) -> Rule:
    """How its work grows; dask-bench's names are known too."""
    if workload.startswith(("array: ", "dataframe: ")):
        return "weak"  # dask-bench sizes every task by the threads
    known = CATALOGUE.get(workload)
    return "weak" if known and known.scaling == "weak" else "strong" if known and known.scaling == "strong" else "none"
