"""Any CSV or Parquet table by a map of its columns: ``wall_s=seconds,variant=build,params.rows=n``.

Columns that the map doesn't name are used where they have our names. What no field takes stays in ``extra``.
There is no field for a block: a block is runs side by side on the same nodes, which a table can't show.
"""

import contextlib
import csv
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from gpubench.errors import DataError
from gpubench.node.spec.plain import parse_json
from gpubench.results.importers.base import Format, Reader, Refused, Row, csv_rows, day, plain_number, positive, whole
from gpubench.results.merge.table_files import TIMES, Dialect, find_dialect, parse_columns, time_of

PARAMS = "params."
STATUSES = ("status", "run_status", "workload_status")
"""Columns that say whether a row counts: as ``compare`` reads a table, and as gpubench exports it."""
_WITHOUT_A_TIME = ("failed", "skipped", "lost")
_MAGIC = b"PAR1"


def _count(text: str) -> int | None:
    return 0 if positive(text) is None and text.strip() in ("0", "0.0") else whole(text)


def _moment(text: str) -> dt.datetime | None:
    """None without an offset from UTC, because the time zone is unknown then."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _parameters(text: str) -> dict[str, Any]:
    """As a table that gpubench exported holds them, a JSON object; what else a column of that name holds are none."""
    try:
        plain = parse_json(text)
    except ValueError:
        return {}
    return plain if isinstance(plain, dict) else {}


FIELDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("workload", "variant", "ucx_version", "backend", "protocol", "device", "run"), str),
    **dict.fromkeys(("workers", "nodes", "workers_per_node", "threads_per_worker", "reps"), whole),
    **dict.fromkeys(("rep", "bytes"), _count),
    "date": day,
    "started_at": _moment,
    "wall_se": positive,
    "warmup": lambda text: {"true": True, "false": False, "1": True, "0": False}.get(text.lower()),
    "params": _parameters,
    "answer": lambda text: text if text in ("ok", "unchecked", "wrong") else None,
}
"""Other fields that a column can fill, and how its text is read; None: it can't be."""


def reader(text: str) -> Reader:
    """Reads tables by the map ``text``; raises as ``parse_columns``."""
    columns = parse_columns(text, FIELDS, PARAMS)
    return lambda path, name: _rows(path, name, columns)


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """A table whose columns have the names of our fields."""
    return _rows(path, name, {})


def _rows(path: Path, name: str, columns: Mapping[str, str]) -> Iterator[Row | Refused]:
    """Rows of a CSV, or of a Parquet file, whose lines are the numbers of its rows, from 1."""
    time = time_of(columns)
    with path.open("rb") as file:
        is_parquet = file.read(len(_MAGIC)) == _MAGIC
    try:
        table = pl.read_parquet(path) if is_parquet else None
        dialect = Dialect() if is_parquet else find_dialect(path, time)
    except (pl.exceptions.PolarsError, OSError):
        yield Refused(name, 0, "no readable Parquet file")
        return
    except DataError as error:
        yield Refused(name, 0, str(error))
        return
    heading = _heading(path, dialect) if table is None else table.columns
    time = time or next((field for field in TIMES if field in heading), "wall_s")
    needed = [*columns.values(), *([] if time in columns.values() else [time])]
    if missing := [column for column in needed if column not in heading]:
        yield Refused(name, 1, f"no column {', '.join(missing)}: there are {', '.join(heading)[:300]}")
        return
    if table is None:
        for entry in csv_rows(path, name, time, needed, time=time, separator=dialect.separator):
            yield entry if isinstance(entry, Refused) else _row(entry[1], columns, path, name, entry[0], dialect)
        return
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        cells = {key: "" if value is None else str(value) for key, value in row.items()}
        yield _row(cells, columns, path, name, number, dialect)


def _heading(path: Path, dialect: Dialect) -> list[str]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as source, contextlib.suppress(csv.Error):
        return next(csv.reader(source, delimiter=dialect.separator), [])
    return []


def _with_own_names(cells: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    """The map, and columns that are called as a field that it doesn't name."""
    times = [field for field in TIMES if field in cells]
    own = [field for field in cells if field in FIELDS or field.startswith(PARAMS)]
    own += [] if TIMES.keys() & columns.keys() else times[:1]
    free = [field for field in own if field not in columns and field not in columns.values()]
    return {**{field: field for field in free}, **columns}


def _row(  # noqa: PLR0917 - what a row is made of
    cells: Mapping[str, str], mapped: Mapping[str, str], path: Path, name: str, line: int, dialect: Dialect
) -> Row | Refused:
    columns = _with_own_names(cells, mapped)
    values: dict[str, Any] = {}
    params: dict[str, Any] = {}
    left = dict(cells)
    for field, column in columns.items():
        text = cells[column] if FIELDS.get(field) in (str, _parameters) else dialect.plain(cells[column])
        value = positive(text) if field in TIMES else FIELDS[field](text) if field in FIELDS else plain_number(text)
        if text and value is None and mapped and field not in (*mapped, *TIMES):
            continue  # nobody said that this column is that field
        if text and value is None:
            return Refused(name, line, f"{column} '{text}' is no {field}")
        left.pop(column, None)
        if field in FIELDS and text:
            values[field] = value
        elif field.startswith(PARAMS) and text:
            params[field.removeprefix(PARAMS)] = value
    (time,) = columns.keys() & TIMES.keys()
    seconds = positive(dialect.plain(cells[columns[time]]))
    if seconds is None:
        return Refused(name, line, f"{columns[time]} is empty")
    if "wall_se" in values:
        values["wall_se"] *= TIMES[time]
    if "started_at" in values and "date" not in values:
        values["date"] = values["started_at"].astimezone(dt.UTC).date()
    if values.get("answer") == "wrong":
        return Refused(name, line, "its answer was wrong")
    if bad := [status for status in STATUSES if cells.get(status) in _WITHOUT_A_TIME]:
        return Refused(name, line, f"{bad[0]} is {cells[bad[0]]}")
    return Row(
        file=name,
        line=line,
        workload=values.pop("workload", path.stem),
        wall_s=seconds * TIMES[time],
        extra=left,
        run=values.pop("run", f"{name}:{line}"),
        identity=(name, line),
        params=values.pop("params", {}) | params,
        **{"reps": None, **values},
    )


FORMAT = Format(
    what="any CSV or Parquet table, by --columns wall_s=COLUMN,variant=COLUMN,...",
    patterns=("*.csv", "*.tsv", "*.parquet"),
    read=read,
    map_columns=reader,
    lacks=("what no column holds", "blocks"),
    caution="it is unknown how the table was made: order, nodes and neighbours may be confounded with the version",
    by_place=True,
)
