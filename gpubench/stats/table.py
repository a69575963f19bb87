"""Anyone's samples: from a table with one row per timed repetition to comparisons.

What can't be read, and what no verdict could stand on, is refused with its row and the reason.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.model.base import nearest
from gpubench.node.spec.sample_columns import COLUMNS, NEEDED
from gpubench.stats.data import CellRun, ComparisonInput, Key, Status
from gpubench.stats.verdict import Verdict

_STATUSES = ("ok", "failed", "skipped", "lost")
_WANTED = {"block": "give every row a whole number", "warmup": "write true or false"}


def normalise(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The same rows with plain types, and neutral values for optional columns that are not there.

    Rows without any value (an empty last line) are left out; a run that isn't ``ok`` needs neither ``rep`` nor time.

    Raises:
        DataError: no rows, lists or objects as values, or a value that can't be read.
    """
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if frame.is_empty():
        raise DataError("the table has no rows")
    columns = {
        "variant": pl.col("variant").cast(pl.String),
        "block": _whole(pl.col("block")),
        "run": pl.col("run").cast(pl.String),
        "rep": _whole(pl.col("rep")),
        "wall_s": pl.col("wall_s").cast(pl.Float64, strict=False),
        "warmup": _true_or_false(frame),
        "order": _whole(_optional(frame, "order", pl.String())),
        "started_at": _posix_seconds(frame),
        "status": _status(frame),
        "job": _optional(frame, "job", pl.String()).fill_null(""),
        "campaign": _optional(frame, "campaign", pl.String()).fill_null(""),
    }
    columns = {name: column for name, column in columns.items() if name not in keys}
    for name in dict.fromkeys([*columns, *keys]):
        if name in frame.columns and frame.schema[name].is_nested():
            raise DataError(f"column '{name}' holds lists or objects", then="give one plain value a row")
    table = frame.select([pl.col(key) for key in keys], **columns)
    if unknown := set(table["status"].unique()) - set(_STATUSES):
        raise DataError(f"no status {', '.join(sorted(unknown))}", then=f"use {', '.join(_STATUSES)}")
    for name in ("variant", "block", "run", "warmup", *keys):
        kind = table.schema[name]
        unreadable = table[name].is_null() | (table[name].is_nan() if kind.is_float() else pl.lit(False))
        _refuse(frame, name, table.select(unreadable).to_series(), _WANTED.get(name, "fill it in every row"))
    _refuse(frame, "rep", table["rep"].is_null() & (table["status"] == "ok"), "number the repetitions of each run")
    for name in ("order", "started_at"):
        if name in frame.columns:
            gone = table[name].is_null() & frame[name].is_not_null()
            _refuse(frame, name, gone, "correct it, or leave the field empty")
    is_text = table["wall_s"].is_null() & frame["wall_s"].is_not_null() & (table["status"] == "ok")
    _refuse(frame, "wall_s", is_text, "give seconds as a plain number")
    return table


def _refuse(frame: pl.DataFrame, name: str, unreadable: pl.Series, then: str) -> None:
    if unreadable.any():
        row = int(unreadable.arg_true()[0])
        value = frame[name][row]
        what = "is empty" if value is None else f"reads '{value}'"
        raise DataError(f"column '{name}' {what} in row {row + 1} below the header", then=then)


def _optional(frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Expr:
    return pl.col(name).cast(kind, strict=False) if name in frame.columns else pl.lit(None, dtype=kind)


def _status(frame: pl.DataFrame) -> pl.Expr:
    """That of the row; of an exported sample, that of its run, or of its workload where the run is ``ok``."""
    names = ("status",) if "status" in frame.columns else ("run_status", "workload_status")
    statuses = [_optional(frame, name, pl.String()) for name in names]
    return pl.coalesce(*(pl.when(status != "ok").then(status) for status in statuses), pl.lit("ok"))


def _whole(column: pl.Expr) -> pl.Expr:
    """Whole numbers, null for anything else; a plain cast would cut 1.5 down to 1."""
    number = column.cast(pl.Float64, strict=False)
    return pl.when(number == number.round()).then(number).cast(pl.Int64, strict=False)


def _true_or_false(frame: pl.DataFrame) -> pl.Expr:
    if "warmup" not in frame.columns:
        return pl.lit(False)
    values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
    text = pl.col("warmup").cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    return text.replace_strict(values, default=None, return_dtype=pl.Boolean)


def _posix_seconds(frame: pl.DataFrame) -> pl.Expr:
    if "started_at" not in frame.columns:
        return pl.lit(None, dtype=pl.Float64)
    column, kind = pl.col("started_at"), frame.schema["started_at"]
    if kind.is_numeric():
        return column.cast(pl.Float64)
    if kind == pl.String:
        # Times without a zone are UTC, as everywhere in gpubench's files.
        column = column.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    elif kind not in (pl.Date, pl.Datetime):
        raise DataError(f"column 'started_at' holds {kind}", then="give seconds, dates with times, or text like these")
    return column.dt.epoch("us") / 1e6


CELL = ("workload", "nodes")
_REQUIRED = tuple(column.name for column in COLUMNS if column.compare == NEEDED)
_DESCRIBES_SAMPLES = {column.name for column in COLUMNS if column.compare} - {*CELL, "campaign"} | {"status"}
_LONGEST_S, _SHORTEST_S = 1e15, 1e-15
"""Times beyond these are no times, and their squares no numbers."""


_OF_A_CAMPAIGN = ("backend", "params", "workers_per_node", "threads_per_worker")
"""Columns of an exported campaign that tell its cells apart beside workload and nodes."""


def own_cells(frame: pl.DataFrame) -> list[str]:
    """Of a table with all columns of an exported campaign's cells those in which the rows of one variant differ.

    Without them, two sizes of a sweep would be one cell.
    """
    same = [*CELL, "variant"]
    if not {*_OF_A_CAMPAIGN, *same} <= {*frame.columns}:
        return []
    values = frame.group_by(same).agg(pl.col(name).n_unique() for name in _OF_A_CAMPAIGN)
    return [name for name in _OF_A_CAMPAIGN if (values[name] > 1).any() and not frame[name].null_count()]


def _require_columns(frame: pl.DataFrame, by: Sequence[str]) -> None:
    """Raises DataError for a missing column (for ``block`` it says what can't be concluded), UsageError for ``by``."""
    # A verdict's own fields stand beside its key in one flat row of JSON.
    if taken := set(by) & (_DESCRIBES_SAMPLES | {field.name for field in dataclasses.fields(Verdict)}):
        raise UsageError(f"--by {', '.join(sorted(taken))}", then="these columns can't tell cells apart; name others")
    if "block" not in frame.columns:
        raise DataError(
            "the table has no column 'block'; without blocks nothing tells a difference between the variants from a "
            "difference between the jobs, nodes or hours they ran in, so no verdict is given",
            then="number the blocks: each one pass over all variants on the same nodes",
        )
    if missing := [name for name in (*_REQUIRED, *by) if name not in frame.columns]:
        raise DataError(f"the table has no column {', '.join(missing)}", then=f"it has {', '.join(frame.columns)}")


def refuse_bad_rows(table: pl.DataFrame, keys: Sequence[str]) -> None:
    """Raises DataError for figures or samples that no verdict can stand on."""
    is_time = pl.col("wall_s").is_between(_SHORTEST_S, _LONGEST_S).fill_null(False)
    bad = table.filter((pl.col("status") == "ok") & ~is_time)
    if len(bad):
        row = bad.row(0, named=True)
        value = "missing" if row["wall_s"] is None else f"{row['wall_s']:g}"
        raise DataError(
            f"the figure of run '{row['run']}', workload '{row['workload']}', rep {row['rep']} is {value} "
            f"({len(bad)} such rows); a time or a cost must be positive and finite ({_SHORTEST_S:g} to "
            f"{_LONGEST_S:g}), and no verdict can stand on others",
            then="correct the rows, or give the run status failed",
        )
    of_sample = list(dict.fromkeys(["campaign", "run", *keys, "warmup", "rep"]))
    twice = table.filter(table.select(of_sample).is_duplicated() & (table["status"] == "ok"))
    if len(twice):
        row = twice.row(0, named=True)
        raise DataError(
            f"run '{row['run']}', workload '{row['workload']}' has rep {row['rep']} twice",
            then="remove the copy, or name the column that tells the rows apart with --by",
        )


def refuse_mixed_runs(table: pl.DataFrame) -> None:
    """Raises DataError for a run that belongs to several variants, blocks or jobs."""
    for name in ("variant", "block", "job"):
        of_run = table.group_by("campaign", "run").agg(pl.col(name).unique().sort())
        mixed = of_run.filter(pl.col(name).list.len() > 1).sort("campaign", "run")
        if len(mixed):
            _, run, values = mixed.row(0)
            raise DataError(
                f"run '{run}' has more than one {name}: {', '.join(map(str, values))}",
                then="a run is one cluster lifetime of one variant in one block; give each its own name",
            )


_WORST_FIRST: tuple[Status, ...] = ("failed", "lost", "skipped", "ok")


def comparisons_from_frame(
    frame: pl.DataFrame, baseline: str, candidate: str, by: Sequence[str] = ()
) -> list[ComparisonInput]:
    """Comparisons of two variants, one per cell of the table; a cell with either variant is in the family.

    Args:
        frame: columns ``workload nodes variant block run rep wall_s`` (seconds), optionally ``warmup`` (true/false),
            ``order`` (place in the block), ``started_at`` (time, ISO text in UTC, or POSIX seconds), ``status`` (else
            ``run_status`` and ``workload_status``), ``job`` and ``campaign`` (where a block is from: equal numbers of
            two campaigns are two blocks). Rows in any order; one run may span workloads. Warm-up rows are left out.
        by: further columns that identify a cell; those of an exported campaign do by themselves.

    Returns:
        Sorted by cell.

    Raises:
        DataError: a column is missing (without blocks nothing can be concluded) or holds what can't be read, a time is
            not positive and finite, a sample stands there twice, or a run belongs to two blocks, variants or jobs.
        UsageError: a variant isn't there, or a column of ``by`` can't tell cells apart.
    """
    _require_columns(frame, by)
    keys = list(dict.fromkeys([*CELL, *by, *own_cells(frame)]))
    table = normalise(frame, keys)
    variants = table["variant"].unique().sort().to_list()
    for variant in (baseline, candidate):
        if variant not in variants:
            raise UsageError(f"no variant '{variant}' in the table{nearest(variant, variants)}")
    # Before other variants go: a run that is half 'A' and half 'a' would lose samples without a word.
    refuse_mixed_runs(table)
    table = table.filter(pl.col("variant").is_in([baseline, candidate]))
    refuse_bad_rows(table, keys)
    # The file doesn't say what was planned; a cell is held against all blocks that its size has (in its campaign, where
    # that tells cells apart).
    size = [name for name in ("nodes", "workers_per_node", "campaign") if name in keys]
    blocks = table.group_by(size).agg(pl.struct("campaign", "block").n_unique().alias("count"))
    planned = {tuple(place): count for *place, count in blocks.iter_rows()}
    cells: dict[Key, list[CellRun]] = {}
    for run in _runs(table, keys):
        cells.setdefault(run.key, []).append(run)
    return [
        ComparisonInput(dict(key), baseline, candidate, runs, planned[tuple(dict(key)[name] for name in size)])
        for key, runs in cells.items()
    ]


def _runs(table: pl.DataFrame, keys: Sequence[str]) -> list[CellRun]:
    timed = (~pl.col("warmup")) & (pl.col("status") == "ok")
    of_run = [name for name in ("campaign", "block", "variant", "run") if name not in keys]
    grouped = (
        table.sort([*keys, *of_run, "rep"])
        .group_by([*keys, *of_run], maintain_order=True)
        .agg(
            pl.col("wall_s").filter(timed),
            pl.col("order").drop_nulls().first(),
            pl.col("started_at").min(),
            pl.col("job").first(),
            pl.col("status").unique(),
        )
    )
    return [_run(row, tuple((key, row[key]) for key in keys)) for row in grouped.iter_rows(named=True)]


def _run(row: dict[str, Any], key: Key) -> CellRun:
    status: Status = next(status for status in _WORST_FIRST if status in row["status"])
    times = tuple(row["wall_s"]) if status == "ok" else ()
    return CellRun(
        run=row["run"],
        block=row["block"],
        variant=row["variant"],
        order=row["order"],
        started_at=row["started_at"],
        wall_s=times,
        # A run that got no further than its warm-up has measured nothing.
        status="lost" if status == "ok" and not times else status,
        job=row["job"],
        key=key,
        origin=str(row["campaign"]),
    )
