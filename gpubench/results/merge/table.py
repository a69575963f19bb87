"""The table of all samples: one row each, what is constant in a run joined to it.

Works on a copied campaign, and while runs are still being written.
"""

import dataclasses
import io
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpubench.errors import DataError
from gpubench.node.spec import sample_columns
from gpubench.node.spec.plain import canonical
from gpubench.node.spec.records import SAMPLES_FILE
from gpubench.node.spec.sample_columns import OF_WHAT, SAMPLE_COLUMNS
from gpubench.results.merge.samples import POLARS, RUN, FinishedRun, read_samples
from gpubench.store.rundirs import Records, run_directories

RESULTS = "gpubench/results/1"

COLUMNS: dict[str, pl.DataType] = {
    column.name: POLARS[column.type] for column in sample_columns.COLUMNS if column.of != sample_columns.IMPORT
}
"""Columns and types of ``results.parquet``. Every sample of a finished run is kept."""

_RUN_KEY = operator.attrgetter("campaign", "nodes", "block", "order", "run", "attempt")
"""What the table's runs are sorted by."""
_MOMENT = "%Y-%m-%dT%H:%M:%S%.f%:z"


def finished_runs(runs_dir: Path, records: Records) -> tuple[list[FinishedRun], list[DataError]]:
    """Every run that has a record, and the errors of those whose record can't be read.

    One without a record is unfinished or lost, and no business of the merge. ``records`` are those that have been read
    already; more come to it.
    """
    runs: list[FinishedRun] = []
    errors: list[DataError] = []
    for directory in run_directories(runs_dir):
        try:
            # The record first: it is written last, so once it is there the samples are all there too.
            record = records.read(directory.path)
        except DataError as error:
            errors.append(error)
            continue
        if record and (record.run, record.attempt) != (directory.run, directory.attempt):
            errors.append(
                DataError(f"{directory.path}: its record is that of run {record.run}, attempt {record.attempt}")
            )
        elif record:
            runs.append(FinishedRun(record, directory.path / SAMPLES_FILE))
    return runs, errors


@dataclasses.dataclass(frozen=True)
class Merged:
    """The table of all samples, sorted by run and time, and the errors of runs that aren't in it."""

    frame: pl.DataFrame
    errors: tuple[DataError, ...] = ()


def merge_runs(runs: Sequence[FinishedRun]) -> Merged:
    """One row per sample of the runs, whatever their order."""
    runs = sorted(runs, key=lambda run: _RUN_KEY(run.record))
    lines, errors = read_samples(runs)
    workloads = _workloads(runs)
    started = pl.col("started_at").str.to_datetime(_MOMENT, time_unit="us", time_zone="UTC")
    lines = lines.with_columns(started).join(workloads.select(RUN, *OF_WHAT, "place"), on=[RUN, *OF_WHAT])
    # Of a workload: warm-ups first, as they happened. Sorted before the wide join, which takes most of the memory.
    lines = lines.drop(OF_WHAT).sort(RUN, "place", "warmup", "rep", descending=[False, False, True, False])
    frame = lines.join(workloads, on=[RUN, "place"], maintain_order="left")
    return Merged(frame.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items()), tuple(errors))


def _workloads(runs: Sequence[FinishedRun]) -> pl.DataFrame:
    """The workloads of every run's record: what all their samples share, and their place in the table."""
    rows: list[dict[str, Any]] = []
    for number, run in enumerate(runs):
        record = run.record
        shared = {RUN: number, **vars(record), "transport": ",".join(record.transport), "run_status": record.status}
        of_run = [
            shared | vars(item) | {"params": canonical(item.params).decode(), "workload_status": item.status}
            for item in record.workloads
        ]
        of_run.sort(key=lambda row: (row["workload"], row["backend"], row["params"], row["workload_status"]))
        rows += [row | {"place": place} for place, row in enumerate(of_run)]
    kinds = {name: kind for name, kind in COLUMNS.items() if name not in SAMPLE_COLUMNS}
    schema = {RUN: pl.Int32(), "place": pl.Int32(), "params_id": pl.String(), **kinds}
    return pl.DataFrame([[row[name] for name in schema] for row in rows], schema=schema, orient="row")


def parquet(table: pl.DataFrame) -> bytes:
    """The table as a Parquet file; the same table gives the same bytes."""
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd", metadata={"schema": RESULTS})
    return buffer.getvalue()


def merge_directory(runs_dir: Path, records: Records | None = None) -> Merged:
    """All samples of the finished runs below ``runs_dir``, with the errors of runs that can't be read.

    ``records`` are those that have been read already; more come to it.
    """
    runs, unread = finished_runs(runs_dir, records or Records())
    merged = merge_runs(runs)
    return Merged(merged.frame, (*unread, *merged.errors))
