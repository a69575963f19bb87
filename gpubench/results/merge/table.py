"""The table of all samples: one row each, what is constant in a run joined to it. Order-free, idempotent.

Works on a copied campaign, and while runs are still being written; the text of the runs is never held all at once.
"""

import dataclasses
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from gpubench.errors import DataError
from gpubench.node.spec import RunRecord, columns
from gpubench.node.spec.columns import SAMPLE_COLUMNS
from gpubench.node.spec.plain import canonical
from gpubench.node.spec.records import SAMPLES_FILE
from gpubench.results.merge.samples import AT, FILE, POLARS, FinishedRun, read_samples
from gpubench.store.rundirs import Records, run_directories

RESULTS = "gpubench/results/1"

COLUMNS: dict[str, pl.DataType] = {
    column.name: POLARS[column.type] for column in columns.COLUMNS if column.of != columns.IMPORT
}
"""Columns and types of ``results.parquet``. Every sample of a finished run is kept."""

# What makes a sample itself. Two samples that agree in all of this and differ elsewhere can't both be true.
_KEY = ["campaign", "nodes", "block", "order", "run", "attempt", "workload", "backend", "params", "warmup", "rep"]
_KEY_DESCENDING = [name == "warmup" for name in _KEY]  # warm-ups first, as they happened
_OF_RUN = [column.name for column in columns.COLUMNS if column.of == columns.RUN]
_OF_WORKLOAD = [name for name in COLUMNS if name not in SAMPLE_COLUMNS]
"""Columns that are the same in all samples of a run, and of a run's workload."""
_AT_ONCE = 50_000
"""Rows that have all their columns at once: enough for speed, little beside the table."""


def run_key(record: RunRecord) -> tuple[str, int, int, int, str, int]:
    """What the table's runs are sorted by, and what makes a run itself."""
    return (record.campaign, record.nodes, record.block, record.order, record.run, record.attempt)


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
    """The table sorted by run and time, what is worth saying, and what could not be merged.

    The table is narrow: ``about`` has a row per workload of a run; ``samples`` have its place there (``at``)
    and what varies.
    """

    about: pl.DataFrame
    samples: pl.DataFrame
    warnings: tuple[str, ...] = ()
    errors: tuple[DataError, ...] = ()

    @property
    def frame(self) -> pl.DataFrame:
        """All rows with all columns: some 300 bytes each."""
        return self._wide(self.samples)

    @property
    def height(self) -> int:
        return self.samples.height

    def slices(self) -> Iterator[pl.DataFrame]:
        """The rows of ``frame``, some at a time."""
        return (self._wide(part) for part in self.samples.iter_slices(_AT_ONCE))

    def _wide(self, samples: pl.DataFrame) -> pl.DataFrame:
        wide = self.about[samples[AT]].hstack(samples.drop(AT))
        return wide.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def merge_runs(runs: Sequence[FinishedRun]) -> Merged:
    """One row per sample of the runs, whatever their order and however often one is there."""
    runs = sorted(runs, key=lambda run: run_key(run.record))
    workloads = _workloads(runs)
    samples, messages = read_samples(runs, workloads)
    samples = samples.select(AT, *SAMPLE_COLUMNS).sort(AT, "warmup", "rep", descending=[False, True, False])
    merged = Merged(workloads.select(_OF_WORKLOAD), samples)
    errors = messages.errors
    if _may_have_copies(workloads, samples):
        frame, contradictions = _settle(merged.frame)
        merged = _narrow(frame)
        errors = [*errors, *contradictions]
    return dataclasses.replace(merged, warnings=tuple(sorted(messages.warnings)), errors=tuple(sorted(errors, key=str)))


def _workloads(runs: Sequence[FinishedRun]) -> pl.DataFrame:
    """The workloads of every run's record, in the table's order."""
    texts: dict[str, str] = {}  # by repr, which is quicker than to write them anew for every run
    rows: list[tuple[Any, ...]] = []
    for run in runs:
        of_run = []
        for workload in {workload.params_id: workload for workload in run.record.workloads}.values():
            spelled = repr(workload.params)
            params = texts.get(spelled) or texts.setdefault(spelled, canonical(workload.params).decode())
            of_run.append(
                (workload.workload, workload.backend, params, run.record.status, workload.status, workload.params_id)
            )
        about = _about(run.record)
        rows += [(run.name, *about, *values) for values in sorted(of_run)]
    kinds = {FILE: pl.String(), **{name: COLUMNS[name] for name in _OF_WORKLOAD}, "params_id": pl.String()}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _about(record: RunRecord) -> tuple[Any, ...]:
    """The columns that are the same in all samples of a run."""
    values = {**vars(record), "transport": ",".join(record.transport)}
    return tuple(values[name] for name in _OF_RUN)


def _may_have_copies(workloads: pl.DataFrame, samples: pl.DataFrame) -> bool:
    """Whether a run is there twice, a record has a workload twice, or two samples of a workload the same number."""
    same = pl.all_horizontal((pl.col(name) == pl.col(name).shift()).fill_null(False) for name in (AT, "warmup", "rep"))
    twice = workloads.select(name for name in _KEY if name in workloads.columns).is_duplicated().any()
    return twice or bool(samples.select(same.any()).item())


def _settle(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[DataError]]:
    """Drop copies, sort, and take out samples of which two differing copies exist."""
    frame = frame.unique().sort(_KEY, descending=_KEY_DESCENDING)
    twice = frame.select(_KEY).is_duplicated()
    errors = [
        DataError(
            f"run {run}, attempt {attempt}: two copies of a sample of {workload} differ; neither is used",
            then="remove the copy that was changed",
        )
        for run, attempt, workload in frame.filter(twice).select("run", "attempt", "workload").unique().iter_rows()
    ]
    return frame.filter(~twice), errors


def _narrow(frame: pl.DataFrame) -> Merged:
    rows = frame.select(_OF_WORKLOAD)
    at = rows.select(pl.struct(pl.all()).rle_id().cast(pl.UInt32).alias(AT)).to_series()
    first = (at != at.shift()).fill_null(value=True)
    return Merged(rows.filter(first), frame.select(at, *SAMPLE_COLUMNS))


def parquet(table: pl.DataFrame | Merged) -> bytes:
    """The table as a Parquet file; the same table gives the same bytes."""
    buffer = io.BytesIO()
    if isinstance(table, pl.DataFrame):
        frames = table.lazy()
    else:

        def wholes(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
            return (part.select(columns or list(COLUMNS)) for part in table.slices())

        frames = register_io_source(wholes, schema=COLUMNS)
    frames.sink_parquet(buffer, compression="zstd", metadata={"schema": RESULTS})
    return buffer.getvalue()


def merge_directory(runs_dir: Path, records: Records | None = None) -> Merged:
    """All samples of the finished runs below ``runs_dir``, with the errors of runs that can't be read.

    ``records`` are those that have been read already; more come to it.
    """
    runs, unread = finished_runs(runs_dir, records or Records())
    merged = merge_runs(runs)
    return dataclasses.replace(merged, errors=(*unread, *merged.errors))
