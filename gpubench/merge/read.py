"""Read finished runs from disk. Works on a copied campaign, and while runs are still being written."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from gpubench.errors import DataError
from gpubench.files import reading
from gpubench.merge.samples import RunFiles
from gpubench.spec import RunRecord
from gpubench.spec.records import SAMPLES_FILE
from gpubench.store.rundirs import Records, RunDirectory, run_directories

BATCH = 500
"""Runs that are read and parsed at once: enough for speed, little beside the table."""


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
            # The record first: it is written last, so once it is there the samples are all there too.
            record = _record(directory, known)
            runs.extend([_with_samples(record, directory)] if record else [])
        except DataError as error:
            errors.append(error)
    return Read(tuple(runs), tuple(errors))


def read_batches(runs_dir: Path, records: Records, errors: list[DataError]) -> Iterator[list[RunFiles]]:
    """As ``read_runs``, BATCH runs at once and sorted by ``run_key``; ``errors`` get those that can't be read."""
    found: list[tuple[RunRecord, RunDirectory]] = []
    for directory in run_directories(runs_dir):
        try:
            record = _record(directory, records)
        except DataError as error:
            errors.append(error)
        else:
            found.extend([(record, directory)] if record else [])
    found.sort(key=lambda one: run_key(one[0]))
    for start in range(0, len(found), BATCH):
        batch = []
        for record, directory in found[start : start + BATCH]:
            try:
                batch.append(_with_samples(record, directory))
            except DataError as error:
                errors.append(error)
        yield batch


def run_key(record: RunRecord) -> tuple[str, int, int, int, str, int]:
    """What the table's runs are sorted by, and what makes a run itself."""
    return (record.campaign, record.nodes, record.block, record.order, record.run, record.attempt)


def _record(directory: RunDirectory, records: Records) -> RunRecord | None:
    record = records.read(directory.path)
    if record and (record.run, record.attempt) != (directory.run, directory.attempt):
        raise DataError(f"{directory.path}: its record is that of run {record.run}, attempt {record.attempt}")
    return record


def _with_samples(record: RunRecord, directory: RunDirectory) -> RunFiles:
    source = directory.path / SAMPLES_FILE
    try:
        with reading(source):
            # A line that isn't UTF-8 is a damaged line, to be reported by its number like any other.
            text = source.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    return RunFiles(record, text, f"{directory.path.parent.name}/{directory.path.name}/{SAMPLES_FILE}")
