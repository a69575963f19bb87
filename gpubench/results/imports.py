"""An import as results: its rows as runs, and dates as blocks; without dates there are no blocks. Pure."""

import dataclasses
import datetime as dt
import functools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.model.text import natural_key
from gpubench.results.importers.base import positive
from gpubench.results.results import Results, RunCircumstances
from gpubench.stats.data import CellRun, ComparisonInput, Key
from gpubench.stats.question import Question

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

UNKNOWN = "version not recorded"
"""The variant of rows of which nobody knows the version."""

_NO_CIRCUMSTANCE: tuple[str, ...] = ("date", "timestamp", "started", "wall", "duration", "runtime", "time_")
_NO_CIRCUMSTANCE += ("throughput", "data_processed", "rate", "tps")
"""How fields begin that hold the result itself, or the day, and so are no reason for it."""
_UNITS = (1.0, 1e3, 1e6)
"""Of a second: a field with the time in one of them holds the result, whatever its name."""

_Group = tuple[Key, str, str, dt.date | None]
"""Cell, variant, run and date."""


def import_results(place: Path, note: Mapping[str, Any], table: pl.DataFrame) -> Results:
    """The results of an import; ``note`` is its ``import.json``."""
    name = str(note["name"])
    groups: dict[_Group, list[dict[str, Any]]] = {}
    for row in table.filter(~pl.col("warmup")).sort("file", "line").iter_rows(named=True):
        cell = tuple((name, row[name]) for name in CELL if row[name] is not None)
        groups.setdefault((cell, row["variant"] or UNKNOWN, row["run"], row["date"]), []).append(row)
    runs = [_run(name, group, rows) for group, rows in groups.items()]

    def circumstances(run: CellRun) -> RunCircumstances:
        row = groups[run.key, run.variant, run.run, run.date][0]
        return RunCircumstances(_facts(json.loads(row["extra"]), row["wall_s"], note["documents"]))

    results = Results(
        kind="import",
        name=name,
        place=place,
        variants=sorted({run.variant for run in runs}),
        keys=sorted({run.key for run in runs}, key=sortable),
        runs=runs,
        family=lambda _question: [],
        about=str(note["format"]),
        caution=str(note["caution"] or ""),
        has_means=bool(((table["reps"] != 1) | table["wall_se"].is_not_null()).any()),
        circumstances=circumstances,
    )
    files = [str(source["file"]) for source in note["sources"]]
    return dataclasses.replace(
        results, family=functools.partial(_family, results, _default_baseline(table, runs, files))
    )


def _run(name: str, group: _Group, rows: Sequence[Mapping[str, Any]]) -> CellRun:
    key, variant, run, date = group
    times = tuple(row["wall_s"] for row in rows)
    return CellRun(
        run=run,
        block=None if date is None else date.year * 10_000 + date.month * 100 + date.day,
        variant=variant,
        order=None,
        started_at=None,
        wall_s=times,
        status="ok",
        key=key,
        origin=name,
        date=date,
        workers=_workers(rows[0]),
        bytes=rows[0]["bytes"],
        wall_se=rows[0]["wall_se"] if len(rows) == 1 else _error(times),
    )


def _workers(row: Mapping[str, Any]) -> int | None:
    """Of the whole cluster: as recorded, else those of a node times the nodes."""
    if row["workers"] is not None or None in (row["nodes"], row["workers_per_node"]):
        return cast("int | None", row["workers"])
    return int(row["nodes"]) * int(row["workers_per_node"])


def _error(times: Sequence[float]) -> float:
    return statistics.stdev(times) / math.sqrt(len(times))


def pooled(runs: Iterable[CellRun]) -> list[CellRun]:
    """The runs of one variant in one block as one: those of a day are times of that day."""
    blocks: dict[Any, list[CellRun]] = {}
    for run in runs:
        blocks.setdefault((run.key, run.variant, run.block_id), []).append(run)
    return [_pooled(several) for several in blocks.values()]


def _pooled(several: Sequence[CellRun]) -> CellRun:
    if len(several) == 1:
        return several[0]
    times = tuple(time for run in several for time in run.times)
    return dataclasses.replace(several[0], wall_s=times, wall_se=_error(times))


def _default_baseline(table: pl.DataFrame, runs: Sequence[CellRun], files: Sequence[str]) -> str | None:
    """The variant of the most dates, of several the one of the first row; None where none is known.

    ``files`` are in the order in which they were named; those that aren't in it come last.
    """
    dates: dict[str, set[dt.date]] = {}
    for run in runs:
        if run.date is not None:
            dates.setdefault(run.variant, set()).add(run.date)
    places = {name: place for place, name in enumerate(files)}
    rows = table.filter(pl.col("variant").is_not_null()).select("file", "line", "variant").rows()
    labels = [str(label) for *_, label in sorted(rows, key=lambda row: (places.get(row[0], len(places)), row[:2]))]
    return max(labels, key=lambda variant: len(dates.get(variant, ()))) if labels else None


def _family(results: Results, default: str | None, question: Question) -> list[ComparisonInput]:
    """Every cell that has the baseline and another variant, on whatever dates; a block is a date, like 20221107.

    Raises:
        DataError: only warm-ups, or no version is recorded, the baseline isn't there, or no cell has two versions.
    """
    if not results.runs:
        raise DataError(
            f"every row of {results.place} is a warm-up, so there is nothing to compare",
            then="import output that was not cut off",
        )
    baseline = question.baseline or default
    if baseline is None:
        raise DataError(
            "the source never recorded which version was measured, so there is nothing to compare",
            then="import the files of each version as LABEL=PATH",
        )
    labels = [label for label in results.variants if label != UNKNOWN]
    if baseline not in labels:
        raise UsageError(f"no variant '{baseline}' in the import", then=f"there are {', '.join(labels) or 'none'}")
    cells = _by_cell(results)
    comparisons = [
        _comparison(key, baseline, candidate, [*variants[baseline], *variants[candidate]])
        for key, variants in cells.items()
        if baseline in variants
        for candidate in sorted(variants.keys() - {baseline})
    ]
    if not comparisons:
        raise DataError(
            f"{results.place} has no cell with two versions, so there is nothing to compare",
            then="import the files of another version too, or name another --baseline",
        )
    if question.candidate and question.candidate not in {comparison.candidate for comparison in comparisons}:
        candidates = ", ".join(sorted({comparison.candidate for comparison in comparisons}))
        raise UsageError(f"no variant '{question.candidate}' beside the baseline", then=f"there are {candidates}")
    return comparisons


def _by_cell(results: Results) -> dict[Key, dict[str, list[CellRun]]]:
    """Runs of known versions by cell and variant, in the order of the cells."""
    cells: dict[Key, dict[str, list[CellRun]]] = {key: {} for key in results.keys}
    for run in results.runs:
        if run.variant != UNKNOWN:
            cells[run.key].setdefault(run.variant, []).append(run)
    return cells


def _comparison(key: Key, baseline: str, candidate: str, runs: Sequence[CellRun]) -> ComparisonInput:
    dated = pooled(run for run in runs if run.block is not None)
    dates = len({run.block for run in dated})
    return ComparisonInput(dict(key), baseline, candidate, dated, dates, by_date=True)


def uncompared(results: Results, baseline: str) -> list[Key]:
    """Cells that the baseline or every other variant lacks, so that the family has no comparison of them."""
    return [key for key, variants in _by_cell(results).items() if variants and not {baseline} < variants.keys()]


def sortable(key: Key) -> list[tuple[str, list[tuple[int, int, str]]]]:
    """Numbers in names are numbers: 8 workers before 16."""
    return [(name, natural_key(str(value))) for name, value in key]


def _facts(extra: Mapping[str, Any], wall_s: float, documents: Mapping[str, Any]) -> dict[str, str]:
    plain = {
        name: value
        for name, value in extra.items()
        if isinstance(value, str | int | float | bool) and value != "" and not _is_result(name, value, wall_s)
    }
    beside = {name: documents.get(digest) for name, digest in (extra.get("documents") or {}).items()}
    return flat(plain) | flat(beside)


def _is_result(name: str, value: Any, wall_s: float) -> bool:
    number = None if isinstance(value, bool) else positive(value)
    is_time = number is not None and any(math.isclose(number, unit * wall_s, rel_tol=1e-9) for unit in _UNITS)
    return is_time or name.lower().startswith(_NO_CIRCUMSTANCE)


def flat(value: Any, path: str = "") -> dict[str, str]:
    """A document as text by dotted names; a list of packages by their names."""
    if isinstance(value, Mapping):
        items: Sequence[tuple[str, Any]] = [(str(name), inner) for name, inner in value.items()]
    elif isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value):
        items = [(str(item["name"]), item.get("version", "")) for item in value]  # a package list
    else:
        return {path: str(value)}
    fields: dict[str, str] = {}
    for name, inner in items:
        fields |= flat(inner, f"{path}.{name}" if path else name)
    return fields
