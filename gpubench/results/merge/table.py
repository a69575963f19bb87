"""The table of all samples: one row each, what is constant in a run joined to it.

Works on a copied campaign, and while runs are still being written.
"""

import io
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from gpubench.node.spec import RunRecord, sample_columns
from gpubench.node.spec.plain import canonical
from gpubench.node.spec.sample_columns import OF_WHAT, SAMPLE_COLUMNS
from gpubench.results.merge.samples import POLARS, RUN, read_samples
from gpubench.store.accounting import RunResult

RESULTS = "gpubench/results/1"

COLUMNS: dict[str, pl.DataType] = {
    column.name: POLARS[column.type] for column in sample_columns.COLUMNS if column.of != sample_columns.IMPORT
}
"""Columns and types of ``results.parquet``."""

_RUN_KEY = operator.attrgetter("campaign", "nodes", "block", "order", "run", "attempt")
"""What the table's runs are sorted by."""
_MOMENT = "%Y-%m-%dT%H:%M:%S%.f%:z"


def sample_table(outcomes: Iterable[RunResult]) -> pl.DataFrame:
    """One row per sample of the runs that have a record, sorted by run and time, whatever the order of the runs."""
    runs = [(outcome.record, outcome.directory) for outcome in outcomes if outcome.record and outcome.directory]
    runs.sort(key=lambda run: _RUN_KEY(run[0]))
    lines = read_samples([directory for _, directory in runs])
    workloads = _workloads([record for record, _ in runs])
    started = pl.col("started_at").str.to_datetime(_MOMENT, time_unit="us", time_zone="UTC")
    lines = lines.with_columns(started).join(workloads.select(RUN, *OF_WHAT, "place"), on=[RUN, *OF_WHAT])
    # Of a workload: warm-ups first, as they happened. Sorted before the wide join, which takes most of the memory.
    lines = lines.drop(OF_WHAT).sort(RUN, "place", "warmup", "rep", descending=[False, False, True, False])
    frame = lines.join(workloads, on=[RUN, "place"], maintain_order="left")
    return frame.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def _workloads(records: Sequence[RunRecord]) -> pl.DataFrame:
    """The workloads of every run's record: what all their samples share, and their place in the table."""
    rows: list[dict[str, Any]] = []
    for number, record in enumerate(records):
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
