"""The lines of ``samples.jsonl``, checked: those of all runs at once, or one by one where a file has an odd line.

Polars reads a million lines in a second, but it is silent about fields that a line lacks or has besides, and says of a
damaged line neither file nor number. ``parse_samples`` finds out what is wrong with which line.
"""

import dataclasses
import datetime as dt
import glob
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from gpubench.errors import DataError
from gpubench.files import reading
from gpubench.node.spec import RunRecord, columns
from gpubench.node.spec.columns import ANSWERS, OF_WHAT, SAMPLE_COLUMNS, Column, Sample
from gpubench.node.spec.plain import parse_json
from gpubench.node.spec.records import WorkloadRecord
from gpubench.store.rundirs import read_bytes

POLARS = {
    columns.TEXT: pl.String(),
    columns.JSON: pl.String(),
    columns.COUNT: pl.Int32(),
    columns.WHOLE: pl.Int64(),
    columns.NUMBER: pl.Float64(),
    columns.FLAG: pl.Boolean(),
    columns.MOMENT: pl.Datetime("us", "UTC"),
    columns.DAY: pl.Date(),
}
"""The types of the table's columns."""
OPTIONAL = tuple(name for name, column in SAMPLE_COLUMNS.items() if not column.required)
"""Columns that stand in a line where they could be read."""
_FIELDS = {*OF_WHAT, *SAMPLE_COLUMNS}
FIRST_DAY, LAST_DAY = dt.datetime(2000, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
"""Between them every repetition begins: what stands in a record was never taken from a calendar of other times."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """The record of one finished run, and the file with its samples."""

    record: RunRecord
    file: Path

    @property
    def name(self) -> str:
        """The file as text, which polars needs; bytes that aren't UTF-8 are spelled.

        From the root on: of a path that begins with ``~`` or ``file:`` polars makes another one.
        """
        return os.fsencode(self.file.absolute()).decode("utf-8", "backslashreplace")

    @property
    def source(self) -> str:
        return "/".join(self.file.parts[-3:])

    def parse(self) -> "ParsedLines":
        """The samples line by line; one that isn't UTF-8 is a damaged line, reported by its number like any other."""
        text = _content(self.file).decode("utf-8", "replace")
        return parse_samples(text, self.source, {workload.params_id: workload for workload in self.record.workloads})


@dataclasses.dataclass
class ParsedLines:
    """Samples with ``started_at`` as microseconds since 1970 (UTC), and what was wrong with the other lines."""

    samples: list[tuple[Sample, int]] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    errors: list[DataError] = dataclasses.field(default_factory=list)


def parse_samples(text: str, source: str, workloads: Mapping[str, WorkloadRecord]) -> ParsedLines:
    """Parse ``text``; ``workloads`` are those that the run's record describes, by ``params_id``.

    A last line without its newline that isn't whole is what a crash leaves behind: a warning. Any other bad line is a
    DataError (kept, not raised) with ``source`` and the line's number; all other lines are parsed.
    """
    parsed = ParsedLines()
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            parsed.samples.append(_sample(parse_json(line), workloads))
        except json.JSONDecodeError:
            if number == len(lines):
                parsed.warnings.append(f"{source}: the last line ({number}) was cut off and is left out")
            else:
                parsed.errors.append(DataError(f"{source}, line {number}: cut off or not JSON"))
        except (TypeError, ValueError, OverflowError) as error:
            parsed.errors.append(DataError(f"{source}, line {number}: {error}"))
    return parsed


def _sample(plain: object, workloads: Mapping[str, WorkloadRecord]) -> tuple[Sample, int]:
    if not isinstance(plain, dict) or not _FIELDS.difference(OPTIONAL) <= plain.keys() <= _FIELDS:
        needed = " ".join(sorted(_FIELDS.difference(OPTIONAL)))
        raise ValueError(f"not a sample with exactly the fields {needed}, and maybe {' '.join(OPTIONAL)}")
    workload, backend, params_id = (plain[name] for name in OF_WHAT)
    if params_id not in workloads:
        raise ValueError(f"params_id {params_id} is no workload of this run's record")
    if (workload, backend) != (workloads[params_id].workload, workloads[params_id].backend):
        raise ValueError(f"{workload} by {backend} isn't the workload of params_id {params_id}")
    for name, column in SAMPLE_COLUMNS.items():
        if name in plain and (fault := column.fault(plain[name])):
            raise ValueError(fault)
    return plain, _microseconds(plain["started_at"])


def _microseconds(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    if not FIRST_DAY <= moment < LAST_DAY:
        raise ValueError(f"started_at = {text} is no time of a measurement")
    return (moment - _EPOCH) // _MICROSECOND


_WIDE = {columns.COUNT: pl.Int64(), columns.MOMENT: pl.String()}
"""How a line is read, so that what is too large for the table, or no time, is seen."""
LINE: dict[str, pl.DataType] = {
    **dict.fromkeys(OF_WHAT, pl.String()),
    **{name: _WIDE.get(column.type, POLARS[column.type]) for name, column in SAMPLE_COLUMNS.items()},
}
"""Fields of a line and their types."""
_MOMENT = "%Y-%m-%dT%H:%M:%S%.f%:z"
FILE, AT = "file", "at"
_LINE_OF_FILE = {**LINE, "started_at": pl.Datetime("us", "UTC"), FILE: pl.String()}
_PLACE = [FILE, "params_id", "workload", "backend"]
"""What a workload of a run is found by."""


def read_samples(runs: Sequence[FinishedRun], workloads: pl.DataFrame) -> tuple[pl.DataFrame, ParsedLines]:
    """Every sample of the runs, and what was wrong with other lines.

    Args:
        runs: each has a file of its own.
        workloads: those of every run, by ``file``, ``params_id``, ``workload`` and ``backend``.

    Returns:
        A sample a row, with the place ``at`` of its workload. What was wrong in files with an odd line; their samples
        stand in the rows, too.
    """
    messages = ParsedLines()
    pairs = {}
    for run in runs:
        try:
            if data := _content(run.file):
                pairs[run.name] = data.count(b'":')
        except DataError as error:
            messages.errors.append(error)
    enums = {name: pl.Enum(workloads[name].unique(maintain_order=True)) for name in _PLACE}
    places = workloads.lazy().select(pl.col(name).cast(kind) for name, kind in enums.items()).with_row_index(AT)

    def read(files: Sequence[str]) -> pl.DataFrame:
        try:
            return _placed(_scanned(files), places, enums).collect().rechunk()
        except (pl.exceptions.PolarsError, FileNotFoundError):  # of one bad line or file; it doesn't say which
            half = len(files) // 2
            return pl.concat([read(files[:half]), read(files[half:])]) if half else read([])

    lines = read([run.name for run in runs if run.name in pairs and run.name == str(run.file.absolute())])
    whole = _whole(lines, pairs)
    frames = [lines if len(whole) == len(pairs) else lines.filter(pl.col(FILE).is_in(whole))]
    for run in runs:
        if run.name in pairs and run.name not in whole:
            parsed = run.parse()
            messages.warnings += parsed.warnings
            messages.errors += parsed.errors
            frames.append(_placed(_frame(parsed, run), places, enums).collect())
    return pl.concat(frames), messages


def _content(file: Path) -> bytes:
    with reading(file):
        try:
            return read_bytes(file)
        except FileNotFoundError:
            return b""


def _scanned(files: Sequence[str]) -> pl.LazyFrame:
    """The lines of the files as polars reads them."""
    if not files:
        return pl.LazyFrame(schema=_LINE_OF_FILE)
    lines = pl.scan_ndjson([glob.escape(file) for file in files], schema=LINE, include_file_paths=FILE)
    return lines.with_columns(
        pl.col("started_at").str.to_datetime(_MOMENT, time_unit="us", time_zone="UTC", strict=False)
    )


def _placed(lines: pl.LazyFrame, places: pl.LazyFrame, enums: Mapping[str, pl.Enum]) -> pl.LazyFrame:
    """The lines with the place of their workload; null where no run's record has it."""
    kinds = {**enums, "answer": pl.Enum(ANSWERS)}
    lines = lines.with_columns(pl.col(name).cast(kind, strict=False) for name, kind in kinds.items())
    return lines.join(places, on=_PLACE, how="left").drop(name for name in _PLACE if name != FILE)


def _whole(lines: pl.DataFrame, pairs: Mapping[str, int]) -> set[str]:
    """The files whose lines polars reads as samples without a further field; ``pairs``: count of ``":`` in each."""
    is_sample = pl.all_horizontal(
        *map(_is_sound, SAMPLE_COLUMNS.values()),
        pl.col("started_at").is_between(FIRST_DAY, LAST_DAY, closed="left"),
        pl.col(AT).is_not_null(),
    )
    fields = (len(LINE) - len(OPTIONAL)) * pl.len() + pl.sum_horizontal(pl.col(OPTIONAL).count())
    files = lines.group_by(FILE).agg(is_sample.all().alias("whole"), fields.alias("fields")).filter("whole")
    # Polars drops a field that it doesn't know.
    return {file for file, count in files.select(FILE, "fields").iter_rows() if count == pairs[file]}


def _is_sound(column: Column) -> pl.Expr:
    """Whether the values can stand in the column; a time has bounds of its own."""
    least, most = column.range
    value = pl.col(column.name)
    sound = value.is_not_null()
    if least is not None:
        sound &= value >= least
    if most is not None and column.type != columns.WHOLE:  # its type has no larger ones
        sound &= value < most
    return sound if column.required else sound | value.is_null()


def _frame(parsed: ParsedLines, run: FinishedRun) -> pl.LazyFrame:
    values = {name: [sample.get(name) for sample, _ in parsed.samples] for name in LINE}
    values |= {
        "started_at": [started_us for _, started_us in parsed.samples],
        FILE: [run.name] * len(parsed.samples),
    }
    frame = pl.LazyFrame(values, schema={**_LINE_OF_FILE, "started_at": pl.Int64()}, strict=False)
    return frame.with_columns(pl.col("started_at").cast(_LINE_OF_FILE["started_at"]))
