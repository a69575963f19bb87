"""The samples of finished runs. A file is read only if it is what its run wrote: the run's record has its hash."""

import dataclasses
import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from gpubench.errors import DataError
from gpubench.files import reading
from gpubench.node.spec import RunRecord, sample_columns
from gpubench.node.spec.records import SAMPLES_FILE
from gpubench.node.spec.sample_columns import OF_WHAT, SAMPLE_COLUMNS

POLARS = {
    sample_columns.TEXT: pl.String(),
    sample_columns.JSON: pl.String(),
    sample_columns.COUNT: pl.Int32(),
    sample_columns.WHOLE: pl.Int64(),
    sample_columns.NUMBER: pl.Float64(),
    sample_columns.FLAG: pl.Boolean(),
    sample_columns.MOMENT: pl.Datetime("us", "UTC"),
    sample_columns.DAY: pl.Date(),
}
"""The types of the table's columns."""
LINE: dict[str, pl.DataType] = {
    **dict.fromkeys(OF_WHAT, pl.String()),
    **{name: POLARS[column.type] for name, column in SAMPLE_COLUMNS.items()},
    "started_at": pl.String(),
}
"""Fields of a line of ``samples.jsonl`` and their types; some are missing in lines of runs that couldn't read them."""
REPEAT = "restore the run from a copy, or remove it: gpubench bench --campaign then replaces its block"
TOGETHER = 500
"""Runs whose lines are parsed in one call: one by one takes six times as long, all at once the memory of all files."""
RUN = "run_number"
"""The run of a line, as its place among the runs that were read."""


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """The record of one finished run, and the file with its samples."""

    record: RunRecord
    file: Path

    def samples(self) -> bytes:
        """The content of the file, empty if the run wrote none; raises DataError if it isn't what the run wrote."""
        with reading(self.file):
            try:
                data = self.file.read_bytes()
            except FileNotFoundError:
                data = b""
        if (hashlib.sha256(data).hexdigest() if data else "") == self.record.files.get(SAMPLES_FILE, ""):
            return data
        raise self.unused("isn't what the run wrote: its record has another hash")

    def unused(self, why: str) -> DataError:
        """An error that says why none of its samples is used."""
        return DataError(f"{'/'.join(self.file.parts[-3:])} {why}; no sample of the run is used", then=REPEAT)


def read_samples(runs: Sequence[FinishedRun]) -> tuple[pl.DataFrame, list[DataError]]:
    """A line of ``samples.jsonl`` a row, with the number of its run, and the errors of runs that can't be used.

    What is cut off at a file's end was being written when its run was killed: it is no sample.
    """
    frames, errors = [_rows({})], []
    for first in range(0, len(runs), TOGETHER):
        texts = {}
        for number in range(first, min(first + TOGETHER, len(runs))):
            try:
                texts[number] = runs[number].samples().rpartition(b"\n")[0]
            except DataError as error:
                errors.append(error)
        frame = _rows(texts)
        if frame is None:  # a user's workload may give anything as its bytes: each run by itself
            for number in [number for number, text in texts.items() if _rows({number: text}) is None]:
                del texts[number]
                errors.append(runs[number].unused("holds values that can't be samples"))
            frame = _rows(texts)
        frames.append(frame)
    return pl.concat([frame for frame in frames if frame is not None]), errors


def _rows(texts: Mapping[int, bytes]) -> pl.DataFrame | None:
    """The lines of runs by their numbers, None if one of them can't be read."""
    texts = {number: text for number, text in texts.items() if text}
    if not texts:
        return pl.DataFrame(schema={**LINE, RUN: pl.Int32()})
    numbers = np.repeat([*texts], [text.count(b"\n") + 1 for text in texts.values()])
    try:
        frame = pl.read_ndjson(io.BytesIO(b"\n".join(texts.values())), schema=LINE)
        return frame.with_columns(pl.Series(RUN, numbers, pl.Int32))
    except pl.exceptions.PolarsError:
        return None
