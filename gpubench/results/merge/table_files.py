"""Tables that people bring: how they are written, and which of their columns is which of ours."""

import contextlib
import csv
import dataclasses
import itertools
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.model.text import KEPT_TEXT, shortened, visible
from gpubench.node.spec.sample_columns import COLUMNS

TIMES = {"wall_s": 1.0, "wall_ms": 1e-3, "wall_us": 1e-6}
"""Fields that hold the time, with their unit in seconds."""
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "wall_s"),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), "wall_ms"),
    **dict.fromkeys(("us", "usec", "usecs", "µs", "μs", "micros", "microsecond", "microseconds"), "wall_us"),
    **dict.fromkeys(("ns", "nsec", "nanos", "nanosecond", "nanoseconds", "mins", "minutes", "h", "hr", "hours"), ""),
}
"""Words of a column's name that are units of time, and their fields; ``min`` may be a minimum."""
_RATES = {"throughput", "bandwidth", "rate", "flops", "gflops", "tflops", "iops", "qps", "tps", "fps", "gbps", "mbps"}
_RATES |= {"bw", "algbw", "busbw", "bps", "kbps", "mpps", "rps", "ops", "hz", "speedup", "efficiency"}
_PER_SECOND = {"per", "b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "bytes"}
"""A unit of time behind one of these makes a rate."""
_WORD = re.compile(r"[A-Z]?[a-zµμ]+|[A-Z]+(?![a-zµμ])")
_SLASH = re.compile(r"/ *(s|sec|second)\b", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_POINT = re.compile(r"[+-]?\d+\.\d+([eE][+-]?\d+)?")
_QUOTED = re.compile(r'"[^"]*"')
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

    def plain(self, number: str) -> str:
        """A number with a point; any other text as it is."""
        return number.replace(",", ".") if self.decimal == "," and _COMMA.fullmatch(number) else number


def find_dialect(path: Path, time: str = "") -> Dialect:
    """How the file is written, as a header without any comma leaves no doubt.

    Args:
        path: the file.
        time: the column of times, whose numbers tell the decimal sign; default: one that is called as a field.

    Raises:
        DataError: a comma in its numbers may be a decimal sign or part thousands.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        names = _QUOTED.sub("", file.readline())
    separators = [separator for separator in (";", "\t") if separator in names]
    if "," in names or len(separators) != 1:
        return Dialect()
    header, *rows = _rows(path, separators[0]) or [[]]
    column = next((name for name in (time, *TIMES) if name in header), None)
    if column is None:
        return Dialect(separators[0])
    numbers = [row[header.index(column)].strip() for row in rows if len(row) == len(header)]
    with_comma = [number for number in numbers if _COMMA.fullmatch(number)]
    if not with_comma:
        return Dialect(separators[0])
    other = next((number for number in numbers if _POINT.fullmatch(number)), "")
    if other or all(_MAYBE_THOUSANDS.fullmatch(number) for number in with_comma):
        doubt = f"and '{other}'" if other else ", where a comma may part thousands"
        raise DataError(
            f"{path} has in column '{column}' numbers like '{with_comma[0]}'{' ' if other else ''}{doubt}",
            then="write every decimal sign as a point",
        )
    return Dialect(separators[0], ",")


def _rows(path: Path, separator: str) -> list[list[str]]:
    """The first rows, header included, up to one that is no CSV."""
    rows: list[list[str]] = []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file, contextlib.suppress(csv.Error):
        rows.extend(itertools.islice(csv.reader(file, delimiter=separator), _LOOKED_AT))
    return rows


def _name_parts(column: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(column)]


def time_field(column: str) -> str | None:
    """The field for a column of times by the unit in its name: ``wall_ms`` for ``join_ms``.

    ``wall_s`` where it names none; None where ``refuse_other_than_times`` refuses every field for it.
    """
    units = [_UNITS[word] for word in _name_parts(column) if word in _UNITS]
    return None if is_rate(column) else (units[-1] or None) if units else "wall_s"


def is_rate(column: str) -> bool:
    """Whether a column's name is that of a rate, of which more is better."""
    parts = _name_parts(column)
    per_time = any(what in _PER_SECOND and _UNITS.get(unit) for what, unit in itertools.pairwise(parts))
    is_time = bool(parts) and bool(_UNITS.get(parts[-1]))  # bandwidth_test_s
    return per_time or bool(_SLASH.search(column)) or (bool(_RATES & set(parts)) and not is_time)


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
    units = [word for word in _name_parts(column) if word in _UNITS]
    if units and not _UNITS[units[-1]]:
        raise UsageError(f"{mapped} is in {units[-1]}", then="add a column of seconds")
    if units and _UNITS[units[-1]] != field:
        raise UsageError(f"{mapped} is in {units[-1]}", then=f"write {_UNITS[units[-1]]}={column}")


def parse_columns(text: str, fields: Collection[str], prefix: str = "") -> dict[str, str]:
    """Columns by field, as ``--columns`` names them: ``FIELD=COLUMN,…``; a field may also be ``prefix`` and a name.

    Raises:
        UsageError: it is no map, names no field, or a column that by its name holds no such time.
    """
    mapping: dict[str, str] = {}
    for word in text.split(","):
        field, equals, column = (part.strip() for part in word.partition("="))
        if not equals or not column or field in mapping:
            raise UsageError(f"--columns: '{word}' is no FIELD=COLUMN, or names a field twice", then=_LIKE_THIS)
        if field not in (*TIMES, *fields) and not (prefix and field.startswith(prefix) and field != prefix):
            named = (*TIMES, *fields, *([f"{prefix}NAME"] if prefix else []))
            raise UsageError(f"--columns: no field '{field}'", then=f"there are {', '.join(named)}")
        refuse_other_than_times(field, column)
        mapping[field] = column
    if len(TIMES.keys() & mapping.keys()) > 1:
        raise UsageError("--columns names several columns of times", then=_LIKE_THIS)
    return mapping


_LIKE_THIS = "write it like --columns variant=build,wall_s=seconds"


def time_of(mapping: Mapping[str, str]) -> str:
    """The column that a map names for the time; empty where it names none."""
    return next((column for field, column in mapping.items() if field in TIMES), "")


_NAMES: dict[str, pl.DataType] = dict.fromkeys(("workload", "variant", "run", "job"), pl.String())
"""Columns of a CSV that are names whatever they look like: as numbers, versions 1.1 and 1.10 would be one."""

_Kind = tuple[Callable[[Path, Dialect], pl.DataFrame], str]


def _read_csv(path: Path, dialect: Dialect) -> pl.DataFrame:
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
    lambda path, _: pl.read_ndjson(path, infer_schema_length=None),
    "it should be UTF-8 without a byte-order mark, one whole JSON object per line, no NaN",
)
READERS: dict[str, _Kind] = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".parquet": (lambda path, _: pl.read_parquet(path), "write it again"),
}
_SECOND = "_duplicated_0"
"""The suffix that polars appends to a name that is in a CSV's header twice."""


def read_table(path: Path, time: str = "") -> tuple[pl.DataFrame, str]:
    """The table, and how its CSV was read where that isn't plain; ``time`` is as for ``find_dialect``.

    Raises:
        UsageError: no file, or one of an unknown kind.
        DataError: it can't be read.
    """
    if path.suffix.lower() not in READERS:
        raise UsageError(f"{path}: unknown kind of file", then=f"give one of {', '.join(sorted(READERS))}")
    read, then = READERS[path.suffix.lower()]
    try:
        with path.open("rb"):  # Python's error has a cause by itself; that of polars names the file once more
            dialect = find_dialect(path, time) if read is _read_csv else Dialect()
            frame = read(path, dialect)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} can't be read: {str(error).splitlines()[0]}", then=then) from None
    if twice := [name for name in frame.columns if name.endswith(_SECOND)]:
        raise DataError(f"{path} has column '{twice[0].removesuffix(_SECOND)}' twice", then="remove one")
    return frame, dialect.note


FIELDS = (*(column.name for column in COLUMNS if column.compare), "status")
"""What a column of a table of samples can be."""
_NEEDED = ("variant", "block", "wall_s")


def as_samples(frame: pl.DataFrame, path: Path, mapping: Mapping[str, str]) -> pl.DataFrame:
    """The table with the columns that samples need.

    Args:
        frame: as it was read. Without ``workload`` its rows are of one, called as the file is; without ``nodes`` of one
            node; without ``run`` and ``rep`` every row is a run; without ``rep`` those of a run are in order.
        mapping: columns by field; each takes the place of a column of the field's own name.

    Raises:
        UsageError: the table lacks a column of ``mapping``.
        DataError: neither the table nor the map has a column of variants or of times, or of runs where one numbers
            their repetitions.
    """
    if unknown := next((column for column in mapping.values() if column not in frame.columns), ""):
        raise UsageError(f"--columns: the table has no column '{unknown}'", then=f"it has {', '.join(frame.columns)}")
    own, named = frame.columns, dict(mapping)
    if not time_of(named) and (time := next((field for field in TIMES if field in frame.columns), "")):
        named[time] = time
    fields = frame.select(pl.col(column).alias(field) for field, column in named.items())
    frame = frame.drop({*named, *named.values()}, strict=False).hstack(fields)
    for time in TIMES.keys() & named.keys():
        frame = _in_seconds(frame, time, named[time])
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing and missing != ["block"]:
        what = "none of the columns" if missing == list(_NEEDED) else "no column"
        header = shortened(visible(",".join(own)), 60)
        # Of one column, something else parts the fields.
        way = _way(frame, missing) if frame.width > 1 else "part fields by commas, semicolons or tabs; write UTF-8"
        raise DataError(f"{path} has {what} {', '.join(missing)}; its header reads '{header}'", then=way)
    given = {"workload": pl.lit(path.stem), "nodes": pl.lit(1)}
    if "run" in frame.columns:
        given["rep"] = pl.int_range(pl.len()).over("run")
    elif "rep" in frame.columns:
        then = "add one that says which start of the program a row is of, or remove rep: then every row is a run"
        raise DataError(f"{path} numbers repetitions in column rep, and has no column run", then=then)
    else:
        row = pl.int_range(1, pl.len() + 1).cast(pl.String)
        given |= {"run": pl.concat_str(pl.lit("row "), row), "rep": pl.lit(0)}
    return frame.with_columns(**{name: value for name, value in given.items() if name not in frame.columns})


def _in_seconds(frame: pl.DataFrame, field: str, column: str) -> pl.DataFrame:
    """The table with ``wall_s`` in place of ``field``."""
    if frame.schema[field].is_temporal():
        raise DataError(f"column '{column}' holds {frame.schema[field]}", then="give plain numbers")
    if field == "wall_s":
        return frame
    seconds = frame[field].cast(pl.Float64, strict=False) * TIMES[field]
    unreadable = seconds.is_null() & frame[field].is_not_null()
    if unreadable.any():
        row = int(unreadable.arg_true()[0])
        raise DataError(
            f"column '{column}' reads '{frame[field][row]}' in row {row + 1} below the header",
            then="give plain numbers",
        )
    return frame.with_columns(wall_s=seconds).drop(field)


def _way(frame: pl.DataFrame, missing: list[str]) -> str:
    """What to type: a field's column has its name in capitals; else the only column of texts is that of variants, the
    only one of numbers that of times."""
    if any(name != name.strip() for name in frame.columns):
        return "remove the blanks beside its commas"
    alike = {name.lower(): name for name in frame.columns}
    kinds = {
        "variant": [name for name, kind in frame.schema.items() if kind == pl.String and name not in FIELDS],
        "wall_s": [
            name for name, kind in frame.schema.items() if kind.is_numeric() and name not in FIELDS and time_field(name)
        ],
    }
    kinds |= {field: [alike[field]] for field in _NEEDED if field in alike}
    named = []
    for field in (field for field in kinds if field in missing):
        column = kinds[field][0] if len(kinds[field]) == 1 else "COLUMN"
        unit = time_field(column) if len(kinds[field]) == 1 and field == "wall_s" else field
        named.append(f"{unit}={column}")
    block = "; and add a column block, a whole number: rows of one block were measured side by side"
    lacks_block = "block" in missing and "block" not in alike
    return f"name yours: --columns {','.join(named)}{block if lacks_block else ''}"
