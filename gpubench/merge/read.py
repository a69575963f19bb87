"""Read finished runs from disk. Works on a copied campaign, and while runs are still being written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gpubench.errors import DataError
from gpubench.files import reading
from gpubench.spec import RunRecord
from gpubench.spec.records import SAMPLES_FILE
from gpubench.store.rundirs import Records, RunDirectory, run_directories


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """What ``merge`` needs of one finished run. ``samples`` is the text of the file that ``source`` names."""

    record: RunRecord
    samples: str
    source: str


@dataclasses.dataclass(frozen=True)
class Read:
    """The finished runs, and the errors of those that couldn't be read (the others are merged all the same)."""

    runs: tuple[RunFiles, ...]
    errors: tuple[DataError, ...]


def read_runs(runs_dir: Path, records: Records | None = None) -> Read:
    """Read every run directory that has a record; one without is unfinished or lost, and no business of the merge.

    ``records`` are those that have been read already; more come to it.
    """
    known = records or Records()
    runs: list[RunFiles] = []
    errors: list[DataError] = []
    for directory in run_directories(runs_dir):
        try:
            run = _read(directory, known)
        except DataError as error:
            errors.append(error)
        else:
            runs.extend([run] if run else [])
    return Read(tuple(runs), tuple(errors))


def _read(directory: RunDirectory, records: Records) -> RunFiles | None:
    # The record first: it is written last, so once it is there the samples are all there too.
    record = records.read(directory.path)
    if record is None:
        return None
    if (record.run, record.attempt) != (directory.run, directory.attempt):
        raise DataError(f"{directory.path}: its record is that of run {record.run}, attempt {record.attempt}")
    source = directory.path / SAMPLES_FILE
    with reading(source):
        # A line that isn't UTF-8 is a damaged line, to be reported by its number like any other.
        text = source.read_text(encoding="utf-8", errors="replace") if source.exists() else ""
    return RunFiles(record, text, f"{directory.path.parent.name}/{directory.path.name}/{SAMPLES_FILE}")
