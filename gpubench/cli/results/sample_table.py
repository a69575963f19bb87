"""Anybody's table of samples: CSV, JSONL or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.model.text import KEPT_TEXT

_NAMES: dict[str, pl.DataType] = dict.fromkeys(("workload", "variant", "run", "job"), pl.String())
"""Columns of a CSV that are names whatever they look like: as numbers, versions 1.1 and 1.10 would be one."""

_Kind = tuple[Callable[[Path], pl.DataFrame], str]
_CSV: _Kind = (
    lambda path: pl.read_csv(path, schema_overrides=_NAMES, infer_schema_length=None).with_columns(
        pl.col(pl.String).str.replace(KEPT_TEXT, "${1}")
    ),
    "it should be UTF-8, one header line, fields parted by commas",
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
"""What polars appends to a name that stands in a CSV's header for the second time."""


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
