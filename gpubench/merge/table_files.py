"""Tables that people bring: how they are written, and which of their columns is which of ours."""

import csv
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.model.text import KEPT_TEXT, shortened, visible
from gpubench.spec.columns import COLUMNS

TIMES = {"wall_s": 1.0, "wall_ms": 1e-3, "wall_us": 1e-6}
"""Fields that hold the time, with their unit in seconds."""
_SUFFIXES = {"ms": "wall_ms", "msec": "wall_ms", "milliseconds": "wall_ms", "us": "wall_us", "microseconds": "wall_us"}
_OTHER_UNITS = ("ns", "nsec", "nanoseconds", "minutes", "hours")
_RATE = re.compile(r"throughput|bandwidth|per_s(ec(ond)?)?$|(^|_)rate$|/s(ec)?$|[kmg]i?b(ps|_s)$", re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?\d+,\d+")
_MAYBE_THOUSANDS = re.compile(r"[+-]?\d{1,3},\d{3}")
_POINT = re.compile(r"[+-]?\d+\.\d+")
_LOOKED_AT = 1000
"""Rows that tell how numbers are written."""


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How a CSV is written: what stands between fields, and the decimal sign."""

    separator: str = ","
    decimal: str = "."

    @property
    def note(self) -> str:
        """What was found beside a comma and a point, for people; empty where nothing was."""
        sign = ", and a comma is the decimal sign" if self.decimal == "," else ""
        name = {";": "a semicolon", "\t": "a tab"}.get(self.separator)
        return f"read with {name} between fields{sign}" if name else ""


def find_dialect(path: Path) -> Dialect:
    """How the file is written: as a header without any comma, and the numbers below it, leave no doubt.

    Raises:
        DataError: a comma in numbers may be a decimal sign or part thousands.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline()
    separators = [separator for separator in (";", "\t") if separator in header]
    if "," in header or len(separators) != 1:
        return Dialect()
    fields = [cell for row in _rows(path, separators[0]) for cell in row]
    with_comma = [cell for cell in fields if _DECIMAL.fullmatch(cell)]
    if not with_comma:
        return Dialect(separators[0])
    doubt = next((cell for cell in fields if _POINT.fullmatch(cell)), "")
    if doubt or all(_MAYBE_THOUSANDS.fullmatch(cell) for cell in with_comma):
        beside = f" beside '{doubt}'" if doubt else ", which may part thousands"
        raise DataError(
            f"{path} has numbers like '{with_comma[0]}'{beside}", then="write every decimal sign as a point"
        )
    return Dialect(separators[0], ",")


def _rows(path: Path, separator: str) -> Iterator[list[str]]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        yield from itertools.islice(csv.reader(file, delimiter=separator), 1, _LOOKED_AT)


def time_field(column: str) -> str:
    """The field for a column of times by the unit at the end of its name: ``wall_ms`` for ``join_ms``."""
    return _SUFFIXES.get(_last_word(column), "wall_s")


def _last_word(column: str) -> str:
    return re.split(r"[_ (]", column.lower().rstrip(")"))[-1]


def is_rate(column: str) -> bool:
    """Whether a column's name is that of a rate, of which more is better."""
    return bool(_RATE.search(column))


def refuse_other_than_times(field: str, column: str) -> None:
    """Refuse a map that would turn the direction round, or times in another unit.

    Raises:
        UsageError: names the column and what to do.
    """
    if field not in TIMES:
        return
    mapped = f"--columns {field}={column}: by its name the column"
    if is_rate(column):
        raise UsageError(f"{mapped} holds a rate, of which more is better", then="add a column of seconds")
    if _last_word(column) in _OTHER_UNITS:
        raise UsageError(f"{mapped} is in {_last_word(column)}", then="add a column of seconds")
    if field == "wall_s" and (right := time_field(column)) != field:
        raise UsageError(f"{mapped} isn't in seconds", then=f"write {right}={column}")


_NAMES: dict[str, pl.DataType] = dict.fromkeys(("workload", "variant", "run", "job"), pl.String())
"""Columns of a CSV that are names whatever they look like: as numbers, versions 1.1 and 1.10 would be one."""

_Kind = tuple[Callable[[Path], pl.DataFrame], str]


def _read_csv(path: Path) -> pl.DataFrame:
    dialect = find_dialect(path)
    frame = pl.read_csv(
        path,
        separator=dialect.separator,
        decimal_comma=dialect.decimal == ",",
        schema_overrides=_NAMES,
        infer_schema_length=None,
    )
    return frame.with_columns(pl.col(pl.String).str.replace(KEPT_TEXT, "${1}"))


_CSV: _Kind = (_read_csv, "it should be UTF-8, one header line, fields separated by commas, semicolons or tabs")
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


def read_table(path: Path) -> tuple[pl.DataFrame, str]:
    """The table, and how its CSV was read where that isn't plain.

    Raises:
        UsageError: no file, or one of an unknown kind.
        DataError: it can't be read.
    """
    if path.suffix.lower() not in READERS:
        raise UsageError(f"{path}: unknown kind of file", then=f"give one of {', '.join(sorted(READERS))}")
    read, then = READERS[path.suffix.lower()]
    try:
        with path.open("rb"):  # Python's error has a cause by itself; that of polars names the file once more
            frame = read(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} can't be read: {str(error).splitlines()[0]}", then=then) from None
    if twice := [name for name in frame.columns if name.endswith(_SECOND)]:
        raise DataError(f"{path} has column '{twice[0].removesuffix(_SECOND)}' twice", then="remove one")
    return frame, find_dialect(path).note if read is _read_csv else ""


FIELDS = (*(column.name for column in COLUMNS if column.compare), "status")
"""What a column of a table of samples can be."""
_NEEDED = ("variant", "block", "wall_s")


def as_samples(frame: pl.DataFrame, path: Path, columns: str | None) -> pl.DataFrame:
    """The table with the columns that samples need.

    Args:
        frame: as it was read. Without ``workload`` its rows are of one, called as the file is; without ``nodes`` of one
            node; without ``run`` and ``rep`` every row is a run.
        columns: which column is which field, ``FIELD=COLUMN`` by commas; in place of a column of the field's own name.

    Raises:
        UsageError: ``columns`` is no map, or not one of this table.
        DataError: neither the table nor the map has a column of variants or of times.
    """
    named = _map(columns, frame)
    if not TIMES.keys() & named.keys() and (time := next((field for field in TIMES if field in frame.columns), "")):
        named[time] = time
    fields = frame.select(pl.col(column).alias(field) for field, column in named.items())
    frame = frame.drop({*named, *named.values()}, strict=False).hstack(fields)
    for time in TIMES.keys() & named.keys() - {"wall_s"}:
        seconds = pl.col(time).cast(pl.Float64, strict=False) * TIMES[time]
        frame = frame.with_columns(wall_s=seconds).drop(time)
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
        if field not in (*FIELDS, *TIMES):
            raise UsageError(f"--columns: no field '{field}'", then=f"there are {', '.join((*FIELDS, *TIMES))}")
        if column not in frame.columns:
            raise UsageError(
                f"--columns: the table has no column '{column}'", then=f"it has {', '.join(frame.columns)}"
            )
        refuse_other_than_times(field, column)
        found[field] = column
    if len(TIMES.keys() & found.keys()) > 1:
        raise UsageError("--columns names several columns of times", then=_LIKE_THIS)
    return found


_LIKE_THIS = "write it like --columns variant=build,wall_s=seconds"


def _way(frame: pl.DataFrame, missing: list[str]) -> str:
    """What to type: the only column of texts is that of variants, the only one of numbers that of times."""
    kinds = {
        "variant": [name for name, kind in frame.schema.items() if kind == pl.String and name not in FIELDS],
        "wall_s": [
            name
            for name, kind in frame.schema.items()
            if kind.is_numeric() and name not in FIELDS and not is_rate(name)
        ],
    }
    named = []
    for field in (field for field in kinds if field in missing):
        column = kinds[field][0] if len(kinds[field]) == 1 else "COLUMN"
        named.append(f"{time_field(column) if field == 'wall_s' else field}={column}")
    block = "; and add a column block, a whole number: rows of one block were measured side by side"
    return f"name yours: --columns {','.join(named)}{block if 'block' in missing else ''}"
