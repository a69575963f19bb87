"""What every importer returns: rows in our words, and what was refused with file and line."""

import csv
import dataclasses
import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.model.text import counted, from_cell
from gpubench.node.spec.sample_columns import COLUMNS

_DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_NUMBER_OR_NOTHING = re.compile(rf"({_DECIMAL.pattern}|\s*[+-]?(nan|inf)?\s*)", re.ASCII | re.IGNORECASE)
_RELEASE = re.compile(r"\s*(?:ucx)?[-_ ]?v?(\d+(?:\.\d+)+\S*)\s*", re.ASCII | re.IGNORECASE)
RATES_AGREE, ROUNDED_S = 1e-2, 1e-3
FIRST_DAY, LAST_DAY = dt.date(2000, 1, 1), dt.date(2100, 1, 1)


@dataclasses.dataclass(frozen=True)
class Row:
    """One time in a foreign file. Facts that its source never recorded are None: nothing is invented.

    Args:
        file: the file's name, below the directory that was given.
        line: in that file, from 1; of a file that isn't read by lines, the number of the record.
        workload: our name where we measure the same thing, else the source's.
        wall_s: seconds; of one repetition, or the arithmetic mean of ``reps`` of them.
        extra: fields of the source, unchanged: all of them, or those that no column of ours has taken.
        run: the program start that the time belongs to, as far as the source tells: its file, or the row.
        identity: must be different for every row of an import.
        date: the day of the measurement.
        reps: the number of repetitions of which ``wall_s`` is the mean; 1 for a repetition, None if unknown.
        wall_se: standard error of that mean in seconds.
        workers: worker processes (GPUs) of the whole cluster.
        documents: other files of the same measurement, like a package list, by name.
    """

    file: str
    line: int
    workload: str
    wall_s: float
    extra: Mapping[str, Any]
    run: str
    identity: tuple[object, ...]
    date: dt.date | None = None
    started_at: dt.datetime | None = None
    variant: str | None = None
    ucx_version: str | None = None
    backend: str | None = None
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    workers: int | None = None
    nodes: int | None = None
    workers_per_node: int | None = None
    threads_per_worker: int | None = None
    protocol: str | None = None
    device: str | None = None
    rep: int | None = None
    warmup: bool = False
    reps: int | None = 1
    wall_se: float | None = None
    bytes: int | None = None
    answer: str = "unchecked"
    documents: Mapping[str, Any] = dataclasses.field(default_factory=dict)


ROW_COLUMNS = {
    column.name: column for column in COLUMNS if column.name in {field.name for field in dataclasses.fields(Row)}
}
"""The columns of the table that a row fills."""


@dataclasses.dataclass(frozen=True)
class Refused:
    """A row, or a whole file (``line`` 0), that couldn't be used, and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}" if self.line else f"{self.file}: {self.reason}"


class Duplicate(Refused):
    """A row or a file with the same content as another one: leaving it out loses nothing."""


Reader = Callable[[Path, str], Iterator[Row | Refused]]
"""Reads one file; the name is used in messages."""


@dataclasses.dataclass(frozen=True)
class Format:
    """A foreign format.

    Args:
        what: one line for ``--help``.
        patterns: names of its files in a directory, as the shell would match them.
        leave: names of files that match, but are read together with others or not at all.
        read: one file.
        lacks: what the format never records, in words.
        caution: what pairs by date can't show.
        by_place: the path of a file tells what it measures, so equal bytes elsewhere are another measurement.
        has_others: some of its files hold no result, which is no fault.
        map_columns: makes a reader of what ``--columns`` says; None: the format has columns of its own.
    """

    what: str
    patterns: Sequence[str]
    read: Reader
    lacks: Sequence[str]
    leave: Sequence[str] = ()
    caution: str = ""
    by_place: bool = False
    has_others: bool = False
    map_columns: Callable[[str], Reader] | None = None


def positive(value: Any) -> float | None:
    """The number, if it is positive and finite; JSON's ``true`` and ``1_0.5``, which Python would read, are none."""
    if isinstance(value, bool) or (isinstance(value, str) and not _DECIMAL.fullmatch(value)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number < math.inf else None


def whole(value: Any) -> int | None:
    """The number, if it is a whole one above 0; averages write 8 as 8.0."""
    number = positive(value)
    return int(number) if number is not None and number == int(number) else None


def impossible(row: Row) -> str:
    """Why a row can't be a measurement, or can't be stored in our table; empty if it can."""
    if row.date is not None and not FIRST_DAY <= row.date <= LAST_DAY:
        return f"{row.date} is no day of a measurement"
    for name, column in ROW_COLUMNS.items():
        value = getattr(row, name)
        if column.range != (None, None) and value is not None and (fault := column.fault(value)):
            return fault
    return ""


def contradiction(seconds: float, tasks: int, rate: Any) -> str:
    """Why ``rate`` (tasks per second) isn't that of the other two, which may be rounded to milliseconds."""
    stated = positive(rate)
    if stated is None or abs(tasks / seconds / stated - 1) <= RATES_AGREE + ROUNDED_S / seconds:
        return ""
    return f"contradicts itself: {tasks} tasks in {seconds:g} s are {tasks / seconds:.4g} a second, not {stated:.4g}"


def plain_version(text: str | None) -> str | None:
    """One spelling of a release: ``v1.12.1``, ``UCX-1.12.1`` and ``1.12.1 `` are 1.12.1; anything else stays."""
    match = _RELEASE.fullmatch(text) if text else None
    return match[1] if match else text


def plain_number(value: Any) -> Any:
    """A parameter as one writes it: 8.0 is 8, and 0.6000000000000001, which averaging left behind, is 0.6."""
    try:
        number = round(float(value), 12)
    except (TypeError, ValueError, OverflowError):
        return value
    if not math.isfinite(number):
        return None
    return int(number) if number == int(number) else number


def day(text: str) -> dt.date | None:
    """``20220711``, ``2022-07-11`` or ``11.07.2022`` (a time behind it is left out); None for anything else.

    Dots stand only in dates that begin with the day; ``11/07/2022`` may be of July or of November.
    """
    for length, form in ((8, "%Y%m%d"), (10, "%Y-%m-%d"), (10, "%d.%m.%Y")):
        try:
            return dt.datetime.strptime(text[:length], form).date()
        except ValueError:
            continue
    return None


def csv_rows(
    path: Path,
    name: str,
    begins: str,
    needed: Sequence[str],
    *,
    time: str = "",
    separator: str = ",",
) -> Iterator[tuple[int, dict[str, str]] | Refused]:
    """Line and fields of every row; files that were joined, each with its own heading, are told apart.

    Args:
        path: the file.
        name: what it is called in messages.
        begins: the column whose name, standing as a value, says that a line is a heading.
        needed: columns without which it is another table.
        time: a column of times: a line that has a number or nothing there is no heading, whatever its other cells say.
        separator: what stands between fields.
    """
    heading: list[str] = []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as source:
        lines = csv.reader(source, delimiter=separator)
        while True:
            try:
                fields = next(lines)
            except StopIteration:
                return
            except csv.Error as error:
                yield Refused(name, lines.line_num, f"no CSV: {error}")
                continue
            if not any(fields):
                continue
            cell = dict(zip(heading, fields, strict=False)).get(time, begins)
            if begins in fields and not _NUMBER_OR_NOTHING.fullmatch(cell):
                heading = fields
                if missing := [column for column in needed if column not in heading]:
                    yield Refused(name, lines.line_num, f"a heading without {', '.join(missing)}")
                    heading = []
            elif not heading:
                yield Refused(
                    name, lines.line_num, f"no row of this table: no heading with {', '.join(needed)} before it"
                )
            elif len(fields) != len(heading):
                yield Refused(name, lines.line_num, f"{counted(len(fields), 'field')}, the heading has {len(heading)}")
            else:
                yield lines.line_num, dict(zip(heading, map(from_cell, fields), strict=True))
