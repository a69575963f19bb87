"""The columns of a table of samples as plain types: what can't be read is refused with its row."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gpubench.errors import DataError

_STATUSES = ("ok", "failed", "skipped", "lost")
_WANTED = {"block": "give every row a whole number", "warmup": "write true or false"}


def normalise(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The same rows with plain types, and neutral values for optional columns that are not there.

    Rows without any value (an empty last line) are left out; a run that isn't ``ok`` needs neither ``rep`` nor time.

    Raises:
        DataError: no rows, lists or objects as values, or a value that can't be read.
    """
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if frame.is_empty():
        raise DataError("the table has no rows")
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
    for name in dict.fromkeys([*columns, *keys]):
        if name in frame.columns and frame.schema[name].is_nested():
            raise DataError(f"column '{name}' holds lists or objects", then="give one plain value a row")
    table = frame.select([pl.col(key) for key in keys], **columns)
    if unknown := set(table["status"].unique()) - set(_STATUSES):
        raise DataError(f"no status {', '.join(sorted(unknown))}", then=f"use {', '.join(_STATUSES)}")
    for name in ("variant", "block", "run", "warmup", *keys):
        kind = table.schema[name]
        unreadable = table[name].is_null() | (table[name].is_nan() if kind.is_float() else pl.lit(False))
        _refuse(frame, name, table.select(unreadable).to_series(), "fill it in every row")
    _refuse(frame, "rep", table["rep"].is_null() & (table["status"] == "ok"), "number the repetitions of each run")
    for name in ("order", "started_at"):
        if name in frame.columns:
            gone = table[name].is_null() & frame[name].is_not_null()
            _refuse(frame, name, gone, "correct it, or leave the field empty")
    words = table["wall_s"].is_null() & frame["wall_s"].is_not_null() & (table["status"] == "ok")
    _refuse(frame, "wall_s", words, "give seconds as a plain number")
    return table


def _refuse(frame: pl.DataFrame, name: str, unreadable: pl.Series, then: str) -> None:
    if unreadable.any():
        row = int(unreadable.arg_true()[0])
        value = frame[name][row]
        what = "is empty" if value is None else f"reads '{value}'"
        raise DataError(f"column '{name}' {what} in row {row + 1} below the header", then=then)


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
    elif kind not in (pl.Date, pl.Datetime):
        raise DataError(f"column 'started_at' holds {kind}", then="give seconds, dates with times, or text like these")
    return column.dt.epoch("us") / 1e6
