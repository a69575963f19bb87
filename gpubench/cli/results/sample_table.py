"""A user's table of samples: CSV, JSONL or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.model.text import KEPT_TEXT, shortened, visible

_NAMES: dict[str, pl.DataType] = dict.fromkeys(("workload", "variant", "run", "job"), pl.String())
"""Columns of a CSV that are names whatever they look like: as numbers, versions 1.1 and 1.10 would be one."""

_Kind = tuple[Callable[[Path], pl.DataFrame], str]
_CSV: _Kind = (
    lambda path: pl.read_csv(path, schema_overrides=_NAMES, infer_schema_length=None).with_columns(
        pl.col(pl.String).str.replace(KEPT_TEXT, "${1}")
    ),
    "it should be UTF-8, one header line, fields separated by commas",
)
# All lines tell the columns: a warm-up that is first marked in line 101 is one too.
_JSON_LINES: _Kind = (
    lambda path: pl.read_ndjson(path, infer_schema_length=None),
    "it should be UTF-8 without a byte-order mark, one whole JSON object per line, no NaN",
)
READERS: dict[str, _Kind] = {
    ".csv": _CSV,
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".parquet": (pl.read_parquet, "write it again"),
}
_SECOND = "_duplicated_0"
"""The suffix that polars appends to a name that is in a CSV's header twice."""


def read_table(path: Path) -> pl.DataFrame:
    """The table; raises UsageError for an unknown kind of file, or none, DataError for one that can't be read."""
    if path.suffix.lower() not in READERS:
        raise UsageError(f"{path}: unknown kind of file", then=f"give one of {', '.join(sorted(READERS))}")
    read, then = READERS[path.suffix.lower()]
    try:
        frame = read(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} can't be read: {str(error).splitlines()[0]}", then=then) from None
    if twice := [name for name in frame.columns if name.endswith(_SECOND)]:
        raise DataError(f"{path} has column '{twice[0].removesuffix(_SECOND)}' twice", then="remove one")
    return frame


FIELDS = (
    *("variant", "block", "wall_s", "workload", "nodes", "run", "rep"),
    *("warmup", "order", "started_at", "status", "job"),
)
"""What a column of a table of samples can be."""
_NEEDED = ("variant", "block", "wall_s")


def as_samples(frame: pl.DataFrame, path: Path, columns: str | None) -> pl.DataFrame:
    """The table with the columns that samples need.

    Args:
        frame: as it was read. Without ``workload`` its rows are of one, called as the file is; without ``nodes`` of one
            node; without ``run`` and ``rep`` every row is a run.
        path: the file, for messages.
        columns: which column is which field, ``FIELD=COLUMN`` by commas.

    Raises:
        UsageError: ``columns`` is no map, or not one of this table.
        DataError: neither the table nor the map has a column of variants or of times.
    """
    frame = frame.rename({column: field for field, column in _map(columns, frame).items()})
    missing = [name for name in _NEEDED if name not in frame.columns]
    if frame.width == 1:  # parted by something else; what reads the samples says so
        return frame
    if missing and missing != ["block"]:
        what = "none of the columns" if missing == list(_NEEDED) else "no column"
        header = shortened(visible(",".join(frame.columns)), 60)
        raise DataError(
            f"{path} has {what} {', '.join(missing)}; its header reads '{header}'", then=_way(frame, missing)
        )
    given = {"workload": pl.lit(path.stem), "nodes": pl.lit(1)}
    if not {"run", "rep"} & set(frame.columns):
        row = pl.int_range(1, pl.len() + 1).cast(pl.String)
        given |= {"run": pl.concat_str(pl.lit("row "), row), "rep": pl.lit(0)}
    return frame.with_columns(**{name: value for name, value in given.items() if name not in frame.columns})


def _map(columns: str | None, frame: pl.DataFrame) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in columns.split(",") if columns is not None else ():
        field, equals, column = (part.strip() for part in word.partition("="))
        if not equals or not column or field in found:
            raise UsageError(f"--columns: '{word}' is no FIELD=COLUMN, or names a field twice", then=_LIKE_THIS)
        if field not in FIELDS:
            raise UsageError(f"--columns: no field '{field}'", then=f"there are {', '.join(FIELDS)}")
        if column not in frame.columns or (field != column and field in frame.columns):
            why = f"has no column '{column}'" if column not in frame.columns else f"has a column '{field}' already"
            raise UsageError(f"--columns: the table {why}", then=f"it has {', '.join(frame.columns)}")
        found[field] = column
    return found


_LIKE_THIS = "write it like --columns variant=build,wall_s=seconds"


def _way(frame: pl.DataFrame, missing: list[str]) -> str:
    """What to type: the only column of texts is that of variants, the only one of numbers that of times."""
    kinds = {
        "variant": [name for name, kind in frame.schema.items() if kind == pl.String and name not in FIELDS],
        "wall_s": [name for name, kind in frame.schema.items() if kind.is_numeric() and name not in FIELDS],
    }
    named = [f"{one}={kinds[one][0] if len(kinds[one]) == 1 else 'COLUMN'}" for one in kinds if one in missing]
    block = "; and add a column block, a whole number: rows of one block were measured side by side"
    return f"name yours: --columns {','.join(named)}{block if 'block' in missing else ''}"
