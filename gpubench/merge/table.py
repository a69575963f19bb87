"""The table of all samples: one row each, what is constant in a run joined to it. Pure, order-free, idempotent."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from gpubench.errors import DataError
from gpubench.merge.batches import whole_samples
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
_OF_RUN = 16
"""So many columns come first that are the same in all samples of a run."""
_BATCH = 500
"""Runs that are parsed at once: enough for speed, little beside the table."""


@dataclasses.dataclass(frozen=True)
class Merged:
    """The table sorted by run and time, what is worth saying, and what could not be merged."""

    frame: pl.DataFrame
    warnings: tuple[str, ...] = ()
    errors: tuple[DataError, ...] = ()


def merge(runs: Iterable[RunFiles]) -> Merged:
    """One row per sample of the finished ``runs``, whatever their order and however often one is given."""
    ordered = sorted(runs, key=_run_key)
    keys = [_run_key(run) for run in ordered]
    parts: list[pl.DataFrame] = []
    warnings: set[str] = set()
    errors: dict[str, DataError] = {}
    for batch in (ordered[at : at + _BATCH] for at in range(0, len(ordered), _BATCH)):
        frame = _all_at_once(batch)
        if frame is None:
            frame, parsed = _line_by_line(batch)
            warnings.update(warning for one in parsed for warning in one.warnings)
            errors.update((str(error), error) for one in parsed for error in one.errors)
        parts.append(frame)
    frame = pl.concat(parts) if parts else _frame([])
    if len(set(keys)) < len(keys) or any(part.select(_KEY).is_duplicated().any() for part in parts):
        frame, contradictions = _settle(frame)
        errors.update((str(error), error) for error in contradictions)
    return Merged(frame, tuple(sorted(warnings)), tuple(errors[text] for text in sorted(errors)))


def _run_key(run: RunFiles) -> tuple[str, int, int, int, str, int]:
    """The fields of ``_KEY`` that are the same in all samples of a run."""
    record = run.record
    return (record.campaign, record.nodes, record.block, record.order, record.run, record.attempt)


def _all_at_once(runs: Sequence[RunFiles]) -> pl.DataFrame | None:
    samples = whole_samples(runs)
    if samples is None:
        return None
    order = ["at", *_KEY[len(_KEY) - 5 :]]
    rows = [(at, *_about(run), run.record.status) for at, run in enumerate(runs)]
    about = {name: COLUMNS[name] for name in [*list(COLUMNS)[:_OF_RUN], "run_status"]}
    of_run = pl.DataFrame(rows, schema={"at": pl.UInt32(), **about}, orient="row")
    joined = samples.sort(order, descending=[name == "warmup" for name in order]).join(
        of_run, on="at", how="left", maintain_order="left"
    )
    return joined.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def _line_by_line(runs: Sequence[RunFiles]) -> tuple[pl.DataFrame, list[ParsedLines]]:
    rows: list[tuple[Any, ...]] = []
    done = []
    for run in runs:
        workloads = {workload.params_id: workload for workload in run.record.workloads}
        parsed = parse_samples(run.samples, run.source, workloads)
        done.append(parsed)
        rows.extend(_rows(run, parsed))
    return _frame(rows).sort(_KEY, descending=_KEY_DESCENDING, maintain_order=True), done


def parquet(frame: pl.DataFrame) -> bytes:
    """The table as a Parquet file; the same table gives the same bytes."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", metadata={"schema": RESULTS})
    return buffer.getvalue()


def _about(run: RunFiles) -> tuple[Any, ...]:
    """The columns that are the same in all samples of a run."""
    record = run.record
    return (
        *(record.campaign, record.site, record.job, record.block, record.run, record.attempt, record.order),
        *(record.variant, record.image, record.ucx_version, ",".join(record.transport), record.protocol, record.device),
        *(record.nodes, record.workers_per_node, record.threads_per_worker),
    )


def _rows(run: RunFiles, parsed: ParsedLines) -> Iterator[tuple[Any, ...]]:
    record, about_run = run.record, _about(run)
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
