"""Checks of a table of samples: what no verdict could stand on is refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gpubench.errors import DataError, UsageError

_REQUIRED = ("workload", "nodes", "variant", "block", "run", "rep", "wall_s")
_NOT_A_KEY = ("variant", "block", "run", "rep", "wall_s", "warmup", "order", "started_at", "status")
_STATUSES = ("ok", "failed", "skipped", "lost")


def require_columns(frame: pl.DataFrame, by: Sequence[str]) -> None:
    """Raises DataError for a missing column (for ``block`` it says what can't be concluded), UsageError for ``by``."""
    if taken := set(by) & {*_NOT_A_KEY}:
        raise UsageError(f"--by {', '.join(sorted(taken))}", then="these columns can't tell cells apart; name others")
    if "block" not in frame.columns:
        raise DataError(
            "the table has no column 'block'; without blocks nothing tells a difference between the variants from a "
            "difference between the jobs, nodes or hours they ran in, so no verdict is given",
            then="number the blocks: each one pass over all variants on the same nodes",
        )
    if missing := [name for name in (*_REQUIRED, *by) if name not in frame.columns]:
        raise DataError(f"the table has no column {', '.join(missing)}", then=f"it has {', '.join(frame.columns)}")


def normalise(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The same rows with plain types, and neutral values for optional columns that are not there."""
    columns = {
        "variant": pl.col("variant").cast(pl.String),
        "block": _whole(pl.col("block")),
        "run": pl.col("run").cast(pl.String),
        "rep": _whole(pl.col("rep")),
        "wall_s": pl.col("wall_s").cast(pl.Float64, strict=False),
        "warmup": _true_or_false(frame),
        "order": _whole(_optional(frame, "order", pl.String())),
        "started_at": _posix_seconds(frame),
        "status": _optional(frame, "status", pl.String()).fill_null("ok"),
        "job": _optional(frame, "job", pl.String()).fill_null(""),
    }
    table = frame.select([pl.col(key) for key in keys if key not in columns], **columns)
    for name in ("variant", "block", "run", "rep", "warmup", *keys):
        if table[name].null_count():
            raise DataError(f"column '{name}' has an empty or unreadable value", then="fill it in every row")
    for name in ("order", "started_at"):
        if name in frame.columns and table[name].null_count() > frame[name].null_count():
            raise DataError(f"column '{name}' has an unreadable value", then="correct it, or leave the field empty")
    if unknown := set(table["status"].unique()) - set(_STATUSES):
        raise DataError(f"no status {', '.join(sorted(unknown))}", then=f"use {', '.join(_STATUSES)}")
    return table


def refuse_bad_rows(table: pl.DataFrame, keys: Sequence[str]) -> None:
    """Raises DataError for times, samples or runs that no verdict can stand on."""
    bad = table.filter(
        (pl.col("status") == "ok") & ~((pl.col("wall_s") > 0) & pl.col("wall_s").is_finite()).fill_null(False)
    )
    if len(bad):
        row = bad.row(0, named=True)
        raise DataError(
            f"run '{row['run']}', workload '{row['workload']}', rep {row['rep']} took {row['wall_s']} s "
            f"({len(bad)} such rows); a time must be positive and finite, and no verdict can stand on others",
            then="correct the rows, or give the run status failed",
        )
    twice = table.filter(table.select(["run", *keys, "rep"]).is_duplicated() & (table["status"] == "ok"))
    if len(twice):
        row = twice.row(0, named=True)
        raise DataError(
            f"run '{row['run']}', workload '{row['workload']}' has rep {row['rep']} twice",
            then="remove the copy, or name the column that tells the rows apart with --by",
        )
    for name in ("variant", "block", "job"):
        mixed = table.group_by("run").agg(pl.col(name).unique().sort()).filter(pl.col(name).list.len() > 1).sort("run")
        if len(mixed):
            run, values = mixed.row(0)
            raise DataError(
                f"run '{run}' has more than one {name}: {', '.join(map(str, values))}",
                then="a run is one cluster lifetime of one variant in one block; give each its own name",
            )


def _optional(frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Expr:
    return pl.col(name).cast(kind, strict=False) if name in frame.columns else pl.lit(None, dtype=kind)


def _whole(column: pl.Expr) -> pl.Expr:
    """Whole numbers, null for anything else; a plain cast would cut 1.5 down to 1."""
    number = column.cast(pl.Float64, strict=False)
    return pl.when(number == number.round()).then(number).cast(pl.Int64, strict=False)


def _true_or_false(frame: pl.DataFrame) -> pl.Expr:
    if "warmup" not in frame.columns:
        return pl.lit(False)
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
    text = pl.col("warmup").cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    return text.replace_strict(words, default=None, return_dtype=pl.Boolean)


def _posix_seconds(frame: pl.DataFrame) -> pl.Expr:
    if "started_at" not in frame.columns:
        return pl.lit(None, dtype=pl.Float64)
    column, kind = pl.col("started_at"), frame.schema["started_at"]
    if kind.is_numeric():
        return column.cast(pl.Float64)
    if kind == pl.String:
        # Times without a zone are UTC, as everywhere in gpubench's files.
        column = column.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    return column.dt.epoch("us") / 1e6
