"""From an importer's rows to a table in our columns; what contradicts is taken out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

import polars as pl

from gpubench.importers.base import Duplicate, Refused, Row
from gpubench.merge.samples import OPTIONAL
from gpubench.merge.table import COLUMNS
from gpubench.spec.plain import canonical

IMPORTED_COLUMNS: dict[str, pl.DataType] = {
    **{name: kind for name, kind in COLUMNS.items() if name not in OPTIONAL},
    "date": pl.Date(),
    "workers": pl.Int32(),
    "reps": pl.Int32(),
    "wall_se": pl.Float64(),
    "file": pl.String(),
    "line": pl.Int32(),
    "extra": pl.String(),
}
"""Our columns, less what only our own runs read, and seven more: ``wall_s`` may be a mean of ``reps`` with its standard
error, ``workers`` are those of the whole cluster, ``extra`` every field of the source as JSON. ``block``, ``job`` and
``order`` are always null."""

_OURS = ("variant", "ucx_version", "protocol", "device", "nodes", "workers_per_node", "threads_per_worker", "workload")
_TOO = (
    "backend",
    "rep",
    "warmup",
    "wall_s",
    "bytes",
    "answer",
    "started_at",
    "run",
    "date",
    "workers",
    "reps",
    "wall_se",
)
_PLACE = ("file", "line")


def settle(rows: Iterable[Row]) -> tuple[list[Row], list[Refused]]:
    """Rows that stand once. Copies are refused but for the first; of rows that contradict each other, all are."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.identity, []).append(row)
    kept: list[Row] = []
    refused: list[Refused] = []
    for group in groups.values():
        first = group[0]
        if len({row.wall_s for row in group}) > 1:
            places = [f"{row.file}:{row.line}" for row in group]
            for row, own in zip(group, places, strict=True):
                others = ", ".join(place for place in places if place != own)
                refused.append(Refused(row.file, row.line, f"says otherwise than {others}; none of them is used"))
            continue
        kept.append(first)
        refused += [Duplicate(row.file, row.line, f"says the same as {first.file}:{first.line}") for row in group[1:]]
    return kept, refused


def frame(rows: Iterable[Row], site: str | None, name: str) -> pl.DataFrame:
    """The table, sorted by date, file and line.

    Args:
        rows: settled ones.
        site: what the user calls the machine.
        name: of the import; it stands where a campaign's does.
    """
    plain = [
        {
            **dict.fromkeys(IMPORTED_COLUMNS),
            **{column: getattr(row, column) for column in (*_OURS, *_TOO, *_PLACE)},
            "campaign": name,
            "site": site,
            "params": canonical(dict(row.params)).decode(),
            "run_status": "ok",
            "workload_status": "ok",
            "extra": json.dumps(dict(row.extra), ensure_ascii=False, sort_keys=True, default=str),
        }
        for row in rows
    ]
    table = pl.DataFrame(plain, schema=IMPORTED_COLUMNS)
    return table.sort("date", "file", "line", "rep", nulls_last=True)
