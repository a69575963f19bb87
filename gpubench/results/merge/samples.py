"""The samples of runs, as lines of one table."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from gpubench.errors import DataError
from gpubench.node.spec import sample_columns
from gpubench.node.spec.records import SAMPLES_FILE
from gpubench.node.spec.sample_columns import OF_WHAT, SAMPLE_COLUMNS
from gpubench.store.rundirs import read_samples_file

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
TOGETHER = 500
"""Runs whose lines are parsed in one call: one by one takes six times as long, all at once the memory of all files."""
RUN = "run_number"
"""The run of a line, as the place of its directory."""


def read_samples(directories: Sequence[Path]) -> pl.DataFrame:
    """A line of ``samples.jsonl`` a row, with the number of its run's directory.

    What is cut off at a file's end was being written when its run was killed: it is no sample.

    Raises:
        DataError: a file holds values that aren't those of samples.
    """
    frames = [_rows({})]
    for first in range(0, len(directories), TOGETHER):
        numbered = enumerate(directories[first : first + TOGETHER], start=first)
        texts = {number: read_samples_file(directory).rpartition(b"\n")[0] for number, directory in numbered}
        try:
            frames.append(_rows(texts))
        except pl.exceptions.PolarsError:
            raise DataError(
                f"{_unreadable(directories, texts)}: its values aren't those of samples",
                then="move the run's directory elsewhere; gpubench bench --campaign then replaces its block",
            ) from None
    return pl.concat(frames)


def _unreadable(directories: Sequence[Path], texts: Mapping[int, bytes]) -> Path:
    """The first of the files that can't be read by itself."""
    for number, text in texts.items():
        try:
            _rows({number: text})
        except pl.exceptions.PolarsError:
            return directories[number] / SAMPLES_FILE
    return directories[0].parent


def _rows(texts: Mapping[int, bytes]) -> pl.DataFrame:
    """The lines of runs by their numbers."""
    texts = {number: text for number, text in texts.items() if text}
    if not texts:
        return pl.DataFrame(schema={**LINE, RUN: pl.Int32()})
    numbers = np.repeat([*texts], [text.count(b"\n") + 1 for text in texts.values()])
    frame = pl.read_ndjson(io.BytesIO(b"\n".join(texts.values())), schema=LINE)
    return frame.with_columns(pl.Series(RUN, numbers, pl.Int32))
