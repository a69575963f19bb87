"""The table of all samples: one row each, what is constant in a run joined to it. Pure, order-free, idempotent."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from gpubench.errors import DataError
from gpubench.merge.lines import ParsedLines, parse_samples
from gpubench.merge.read import RunFiles
from gpubench.spec.plain import canonical

RESULTS = "gpubench/results/1"

COLUMNS: dict[str, pl.DataType] = {
    "campaign": pl.String(),
    "site": pl.String(),
    "job": pl.String(),
    "block": pl.Int32(),
    "run": pl.String(),
    "attempt": pl.Int32(),
    "order": pl.Int32(),
    "variant": pl.String(),
    "image": pl.String(),
    "ucx_version": pl.String(),
    "transport": pl.String(),
    "protocol": pl.String(),
    "device": pl.String(),
    "nodes": pl.Int32(),
    "workers_per_node": pl.Int32(),
    "threads_per_worker": pl.Int32(),
    "workload": pl.String(),
    "backend": pl.String(),
    "params": pl.String(),
    "rep": pl.Int32(),
    "warmup": pl.Boolean(),
    "wall_s": pl.Float64(),
    "bytes": pl.Int64(),
    "answer": pl.String(),
    "started_at": pl.Datetime("us", "UTC"),
    "run_status": pl.String(),
    "workload_status": pl.String(),
}
"""Columns and types of ``results.parquet``.

``params`` is canonical JSON, ``transport`` comma-joined. The last two are ``ok failed skipped``: every sample of a
finished run is kept, and only those with ``ok`` in both may enter a verdict.
"""

# What makes a sample itself. Two samples that agree in all of this and differ elsewhere can't both be true.
_KEY = ["campaign", "nodes", "block", "order", "run", "attempt", "workload", "backend", "params", "warmup", "rep"]
_KEY_DESCENDING = [name == "warmup" for name in _KEY]  # warm-ups first, as they happened


@dataclasses.dataclass(frozen=True)
class Merged:
    """The table sorted by run and time, what is worth saying, and what could not be merged."""

    frame: pl.DataFrame
    warnings: tuple[str, ...] = ()
    errors: tuple[DataError, ...] = ()


def merge(runs: Iterable[RunFiles]) -> Merged:
    """One row per sample of the finished ``runs``, whatever their order and however often one is given."""
    rows: list[tuple[Any, ...]] = []
    warnings: set[str] = set()
    errors: dict[str, DataError] = {}
    for run in runs:
        workloads = {workload.params_id: workload for workload in run.record.workloads}
        parsed = parse_samples(run.samples, run.source, workloads)
        warnings.update(parsed.warnings)
        errors.update((str(error), error) for error in parsed.errors)
        rows.extend(_rows(run, parsed))
    frame, contradictions = _settle(_frame(rows))
    errors.update((str(error), error) for error in contradictions)
    return Merged(frame, tuple(sorted(warnings)), tuple(errors[text] for text in sorted(errors)))


def parquet(frame: pl.DataFrame) -> bytes:
    """The table as a Parquet file; the same table gives the same bytes."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", metadata={"schema": RESULTS})
    return buffer.getvalue()


def _rows(run: RunFiles, parsed: ParsedLines) -> Iterator[tuple[Any, ...]]:
    record = run.record
    about_run = (
        *(record.campaign, record.site, record.job, record.block, record.run, record.attempt, record.order),
        *(record.variant, record.image, record.ucx_version, ",".join(record.transport), record.protocol, record.device),
        *(record.nodes, record.workers_per_node, record.threads_per_worker),
    )
    about_workload = {
        workload.params_id: (workload.workload, workload.backend, canonical(workload.params).decode(), workload.status)
        for workload in record.workloads
    }
    for line, started_us in parsed.samples:
        workload, backend, params, status = about_workload[line.params_id]
        timing = (line.rep, line.warmup, float(line.wall_s), line.bytes, line.answer, started_us)
        yield (*about_run, workload, backend, params, *timing, record.status, status)


def _frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    # started_at travels as microseconds: building a million aware datetime objects is what would be slow here.
    as_built = {name: pl.Int64() if name == "started_at" else kind for name, kind in COLUMNS.items()}
    return pl.DataFrame(rows, schema=as_built, orient="row").with_columns(
        pl.col("started_at").cast(COLUMNS["started_at"])
    )


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
