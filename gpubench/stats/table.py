"""Anyone's samples: from a table with one row per timed repetition to comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from gpubench.errors import DataError
from gpubench.stats.data import ComparisonInput, RunSamples, Status
from gpubench.stats.table_checks import refuse_bad_rows, refuse_mixed_runs, require_columns
from gpubench.stats.table_types import normalise

CELL = ("workload", "nodes")
_WORST_FIRST: tuple[Status, ...] = ("failed", "lost", "skipped", "ok")


def comparisons_from_frame(
    frame: pl.DataFrame, baseline: str, candidate: str, by: Sequence[str] = ()
) -> list[ComparisonInput]:
    """Comparisons of two variants, one per cell of the table; a cell with either variant is in the family.

    Args:
        frame: columns ``workload nodes variant block run rep wall_s`` (seconds), optionally ``warmup`` (true/false),
            ``order`` (place in the block), ``started_at`` (time, ISO text in UTC, or POSIX seconds), ``status`` and
            ``job``. Rows in any order; one run may span workloads. Warm-up rows are left out.
        baseline: label of the variant compared against.
        candidate: label of the variant judged.
        by: further columns that identify a cell.

    Returns:
        Sorted by cell.

    Raises:
        DataError: a column is missing (without blocks nothing can be concluded) or holds what can't be read, a time is
            not positive and finite, a sample stands there twice, a run belongs to two blocks, variants or jobs, or a
            variant isn't there.
        UsageError: a column of ``by`` can't tell cells apart.
    """
    require_columns(frame, by)
    keys = list(dict.fromkeys([*CELL, *by]))
    table = normalise(frame, keys)
    there = table["variant"].unique().sort().to_list()
    for variant in (baseline, candidate):
        if variant not in there:
            raise DataError(f"no variant '{variant}' in the table", then=f"there are {', '.join(there)}")
    # Before other variants go: a run that is half 'A' and half 'a' would lose samples without a word.
    refuse_mixed_runs(table)
    table = table.filter(pl.col("variant").is_in([baseline, candidate]))
    refuse_bad_rows(table, keys)
    # The file doesn't say what was planned; a cell is held against all blocks that its node count has.
    planned = dict(table.group_by("nodes").agg(pl.col("block").n_unique()).iter_rows())
    cells: dict[tuple[Any, ...], list[RunSamples]] = {}
    for key, run in _runs(table, keys):
        cells.setdefault(key, []).append(run)
    return [
        ComparisonInput(dict(zip(keys, key, strict=True)), baseline, candidate, tuple(runs), planned[key[1]])
        for key, runs in cells.items()
    ]


def _runs(table: pl.DataFrame, keys: Sequence[str]) -> list[tuple[tuple[Any, ...], RunSamples]]:
    timed = (~pl.col("warmup")) & (pl.col("status") == "ok")
    grouped = (
        table.sort([*keys, "block", "variant", "run", "rep"])
        .group_by([*keys, "block", "variant", "run"], maintain_order=True)
        .agg(
            pl.col("wall_s").filter(timed),
            pl.col("order").drop_nulls().first(),
            pl.col("started_at").min(),
            pl.col("job").first(),
            pl.col("status").unique(),
        )
    )
    return [(tuple(row[key] for key in keys), _run(row)) for row in grouped.iter_rows(named=True)]


def _run(row: dict[str, Any]) -> RunSamples:
    status: Status = next(status for status in _WORST_FIRST if status in row["status"])
    times = tuple(row["wall_s"]) if status == "ok" else ()
    return RunSamples(
        run=row["run"],
        block=row["block"],
        variant=row["variant"],
        order=row["order"],
        started_at=row["started_at"],
        wall_s=times,
        # A run that got no further than its warm-up has measured nothing.
        status="lost" if status == "ok" and not times else status,
        job=row["job"],
    )
