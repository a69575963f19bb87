"""From an imported table to comparisons: dates are used as blocks; without dates there are no blocks. Pure.

Scaling of an import: its cells by the number of workers, as far as the source recorded that. Pure.
"""

import dataclasses
import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from gpubench.errors import DataError
from gpubench.model.text import natural_key
from gpubench.stats.data import ComparisonInput, RunSamples
from gpubench.stats.scaling import Rule, ScalingPoint
from gpubench.stats.verdict import Verdict
from gpubench.workloads.catalogue import CATALOGUE

CELL = (
    "site",
    "workload",
    "backend",
    "params",
    "nodes",
    "workers",
    "workers_per_node",
    "threads_per_worker",
    "protocol",
    "device",
)
"""What identifies a cell of an import; what the source never recorded is no part of it."""

Key = tuple[tuple[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Point:
    """A cell under one variant on one date: every time of that day, in order."""

    key: Key
    variant: str
    date: dt.date
    wall_s: tuple[float, ...]
    wall_se: float | None
    workers: int | None
    bytes: int | None
    extras: tuple[str, ...]
    """What the source says of each row, as JSON."""


def points(table: pl.DataFrame) -> list[Point]:
    """Sorted by cell, variant and date; rows without a date or a variant are in none."""
    rows = table.filter(pl.col("date").is_not_null() & pl.col("variant").is_not_null() & ~pl.col("warmup"))
    groups: dict[tuple[Key, str, dt.date], list[dict[str, Any]]] = {}
    for row in rows.sort("file", "line").iter_rows(named=True):
        groups.setdefault((cell_of(row), row["variant"], row["date"]), []).append(row)
    return [
        Point(
            *place,
            tuple(row["wall_s"] for row in group),
            group[0]["wall_se"] if len(group) == 1 else None,
            group[0]["workers"],
            group[0]["bytes"],
            tuple(row["extra"] for row in group),
        )
        for place, group in sorted(groups.items(), key=lambda item: (_sortable(item[0][0]), *item[0][1:]))
    ]


def cell_of(row: dict[str, Any]) -> Key:
    """The known facts about the cell."""
    return tuple((name, row[name]) for name in CELL if row[name] is not None)


def default_baseline(found: Sequence[Point], table: pl.DataFrame, files: Sequence[str] = ()) -> str:
    """The variant of the most dates, of several the one of the first row; raises DataError where none is known.

    ``files`` are in the order in which they were named; those that aren't in it come last.
    """
    dates = {one.variant: set[dt.date]() for one in found}
    for one in found:
        dates[one.variant].add(one.date)
    places = {name: place for place, name in enumerate(files)}
    rows = table.filter(pl.col("variant").is_not_null()).select("file", "line", "variant").rows()
    labels = [str(label) for *_, label in sorted(rows, key=lambda row: (places.get(row[0], len(places)), row[:2]))]
    if labels:
        return max(labels, key=lambda variant: len(dates.get(variant, ())))
    raise DataError(
        "the source never recorded which version was measured, so there is nothing to compare",
        then="import the files of each version as LABEL=PATH",
    )


def family(table: pl.DataFrame, baseline: str) -> list[ComparisonInput]:
    """Every cell that has the baseline and another variant, on whatever dates; a block is a date, like 20221107.

    Order, job and nodes stay unknown. Raises DataError where the baseline isn't there.
    """
    variants: dict[Key, set[str]] = {}
    for row in table.filter(pl.col("variant").is_not_null()).iter_rows(named=True):
        variants.setdefault(cell_of(row), set()).add(row["variant"])
    there = sorted({label for labels in variants.values() for label in labels})
    if baseline not in there:
        raise DataError(f"no variant '{baseline}' in the import", then=f"there are {', '.join(there) or 'none'}")
    by_cell: dict[Key, list[Point]] = {}
    for one in points(table):
        by_cell.setdefault(one.key, []).append(one)
    return [
        _comparison(key, baseline, candidate, by_cell.get(key, []))
        for key in sorted(variants, key=_sortable)
        if baseline in variants[key]
        for candidate in sorted(variants[key] - {baseline})
    ]


def _comparison(key: Key, baseline: str, candidate: str, found: Iterable[Point]) -> ComparisonInput:
    runs = [_run(one) for one in found if one.variant in (baseline, candidate)]
    return ComparisonInput(
        key=dict(key),
        baseline=baseline,
        candidate=candidate,
        runs=runs,
        planned_blocks=len({run.block for run in runs}),
    )


def _run(one: Point) -> RunSamples:
    block = one.date.year * 10_000 + one.date.month * 100 + one.date.day
    return RunSamples(f"{one.variant} {one.date}", block, one.variant, None, None, one.wall_s, "ok")


def reworded(verdicts: Iterable[Verdict], comparisons: Iterable[ComparisonInput]) -> Iterator[Verdict]:
    """The reason of a cell without pairs, in an import's words: dates can't be added later."""
    for verdict, one in zip(verdicts, comparisons, strict=True):
        reason = verdict.reason
        if not one.runs:
            reason = "no block: no date is recorded, so versions can't be separated from the days of measurement"
        elif not verdict.blocks:
            reason = f"no data: no date on which both were measured, of {one.planned_blocks}"
        yield dataclasses.replace(verdict, reason=reason, more_blocks=None)


def _sortable(key: Key) -> list[tuple[str, list[tuple[int, int, str]]]]:
    return [(name, natural_key(str(value))) for name, value in key]


def uncompared(table: pl.DataFrame, baseline: str) -> list[Key]:
    """Cells that the baseline or every other variant lacks, so that ``family`` has no comparison of them."""
    variants: dict[Key, set[str]] = {}
    for row in table.filter(pl.col("variant").is_not_null()).iter_rows(named=True):
        variants.setdefault(cell_of(row), set()).add(row["variant"])
    return [key for key in sorted(variants, key=_sortable) if not {baseline} < variants[key]]


UNKNOWN = "version not recorded"
GROWS = ("base_chunks", "other_chunks")
"""Parameters that follow the size of the cluster."""

_SIZE = ("nodes", "workers", "workers_per_node", "threads_per_worker", "params")


@dataclasses.dataclass(frozen=True)
class ImportedCurve:
    """One workload under one variant; ``measured`` counts threads as units, one per run or date."""

    key: Key
    variant: str
    rule: Rule
    measured: tuple[ScalingPoint, ...]


def curves(table: pl.DataFrame) -> list[ImportedCurve]:
    """Every cell apart from its size, by variant; rows of unknown size are in none."""
    runs: dict[tuple[Key, str], dict[int, dict[str, list[float]]]] = {}
    for row in table.filter(~pl.col("warmup")).sort("file", "line").iter_rows(named=True):
        size = units_of(row)
        if size is not None:
            by_size = runs.setdefault((_key(row), row["variant"] or UNKNOWN), {})
            by_size.setdefault(size, {}).setdefault(row["run"], []).append(row["wall_s"])
    return [
        ImportedCurve(
            key,
            variant,
            rule_of(str(dict(key)["workload"])),
            tuple(
                ScalingPoint(1, size, 1, tuple(math.log(math.fsum(one) / len(one)) for one in by_size[size].values()))
                for size in sorted(by_size)
            ),
        )
        for (key, variant), by_size in sorted(runs.items(), key=lambda item: (str(item[0][0]), item[0][1]))
    ]


def units_of(row: dict[str, Any]) -> int | None:
    """Worker threads of the whole cluster; None if they weren't recorded."""
    return None if row["workers"] is None else int(row["workers"]) * int(row["threads_per_worker"] or 1)


def _key(row: dict[str, Any]) -> Key:
    params = {name: value for name, value in json.loads(row["params"]).items() if name not in GROWS}
    known = [(name, row[name]) for name in CELL if name not in _SIZE and row[name] is not None]
    return (*known, ("params", json.dumps(params, sort_keys=True)))


def rule_of(workload: str) -> Rule:
    """How its work grows; of names that gpubench doesn't know, nothing is known."""
    known = CATALOGUE.get(workload)
    return "weak" if known and known.scaling == "weak" else "strong" if known and known.scaling == "strong" else "none"
