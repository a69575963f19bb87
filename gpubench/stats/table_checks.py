"""Checks of a table of samples: what no verdict could stand on is refused with the reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.stats.verdict import Verdict

_REQUIRED = ("workload", "nodes", "variant", "block", "run", "rep", "wall_s")
_DESCRIBES_SAMPLES = {"variant", "block", "run", "rep", "wall_s", "warmup", "order", "started_at", "status", "job"}
_LONGEST_S, _SHORTEST_S = 1e15, 1e-15
"""Times beyond these are no times, and their squares no numbers."""


def require_columns(frame: pl.DataFrame, by: Sequence[str]) -> None:
    """Raises DataError for a missing column (for ``block`` it says what can't be concluded), UsageError for ``by``."""
    # A verdict's own fields stand beside its key in one flat row of JSON.
    if taken := set(by) & (_DESCRIBES_SAMPLES | {field.name for field in dataclasses.fields(Verdict)}):
        raise UsageError(f"--by {', '.join(sorted(taken))}", then="these columns can't tell cells apart; name others")
    if not set(_REQUIRED) & set(frame.columns):
        raise DataError(
            f"the table has none of the columns {', '.join(_REQUIRED)}; its header reads '{_shown(frame.columns)}'",
            then="one header line, names spelled as these, fields parted by commas, UTF-8",
        )
    if "block" not in frame.columns:
        raise DataError(
            "the table has no column 'block'; without blocks nothing tells a difference between the variants from a "
            "difference between the jobs, nodes or hours they ran in, so no verdict is given",
            then="number the blocks: each one pass over all variants on the same nodes",
        )
    if missing := [name for name in (*_REQUIRED, *by) if name not in frame.columns]:
        raise DataError(f"the table has no column {', '.join(missing)}", then=f"it has {', '.join(frame.columns)}")


def refuse_bad_rows(table: pl.DataFrame, keys: Sequence[str]) -> None:
    """Raises DataError for times or samples that no verdict can stand on."""
    is_time = pl.col("wall_s").is_between(_SHORTEST_S, _LONGEST_S).fill_null(False)
    bad = table.filter((pl.col("status") == "ok") & ~is_time)
    if len(bad):
        row = bad.row(0, named=True)
        raise DataError(
            f"run '{row['run']}', workload '{row['workload']}', rep {row['rep']} took {_seconds(row['wall_s'])} "
            f"({len(bad)} such rows); a time must be positive and finite ({_SHORTEST_S:g} to {_LONGEST_S:g} s), "
            "and no verdict can stand on others",
            then="correct the rows, or give the run status failed",
        )
    twice = table.filter(table.select(["run", *keys, "warmup", "rep"]).is_duplicated() & (table["status"] == "ok"))
    if len(twice):
        row = twice.row(0, named=True)
        raise DataError(
            f"run '{row['run']}', workload '{row['workload']}' has rep {row['rep']} twice",
            then="remove the copy, or name the column that tells the rows apart with --by",
        )


def refuse_mixed_runs(table: pl.DataFrame) -> None:
    """Raises DataError for a run that belongs to several variants, blocks or jobs."""
    for name in ("variant", "block", "job"):
        mixed = table.group_by("run").agg(pl.col(name).unique().sort()).filter(pl.col(name).list.len() > 1).sort("run")
        if len(mixed):
            run, values = mixed.row(0)
            raise DataError(
                f"run '{run}' has more than one {name}: {', '.join(map(str, values))}",
                then="a run is one cluster lifetime of one variant in one block; give each its own name",
            )


def _seconds(value: float | None) -> str:
    return "no time at all" if value is None else f"{value:g} s"


def _shown(names: Sequence[str]) -> str:
    text = ",".join(names)
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= 60 else f"{plain[:59]}…"
