"""Load results: of the campaign, import or table that somebody names, or of two of them as two sides."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from gpubench.errors import DataError, UsageError
from gpubench.model.text import counted
from gpubench.node.spec.records import LINKS_FILE, SAMPLES_FILE
from gpubench.node.spec.sample_columns import COLUMNS
from gpubench.results.campaigns import campaign_results
from gpubench.results.importers.directory import ImportedResults
from gpubench.results.imports import import_results
from gpubench.results.merge.table import sample_table
from gpubench.results.merge.table_files import FIELDS, READERS, as_samples, parse_columns, read_table, time_of
from gpubench.results.results import Results
from gpubench.results.sides import two_sides
from gpubench.results.targets import all_opened, opened, root_of
from gpubench.stats.data import ComparisonInput
from gpubench.stats.question import Question
from gpubench.stats.table import comparisons_from_frame
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

_log = logging.getLogger(__name__)

COSTS = [column for column in COLUMNS if column.name in ("cpu_s", "energy_j")]
"""Columns of ours that may be judged in place of the seconds."""
OWN_TABLES = ("results.parquet", SAMPLES_FILE, LINKS_FILE)
"""Files of campaigns and imports that would be tables of samples elsewhere."""


def is_table(path: Path) -> bool:
    """Whether it has the name of a table, and is no file of a campaign or an import."""
    return path.suffix.lower() in READERS and not (path.name in OWN_TABLES and root_of(path) != path)


def load(path: Path) -> Results:
    """The results of a campaign or an import; raises UsageError, DataError."""
    _refuse_table(path)
    return results_of(opened(path))


def _refuse_table(path: Path) -> None:
    if is_table(path):
        raise UsageError(f"{path} is a table of samples", then="put both sides into one, as two variants")


def load_all(paths: Sequence[Path]) -> Iterator[Results]:
    """Of the campaigns and imports that are named or are in a named directory; raises UsageError if there are none."""
    return map(results_of, all_opened(paths))


def results_of(kept: Campaign | ImportedResults) -> Results:
    """Everything that a campaign or an import holds now."""
    if isinstance(kept, Campaign):
        outcomes = account_now(kept).outcomes
        return campaign_results(kept, outcomes, sample_table(outcomes))
    return import_results(kept.directory, kept.note, kept.table)


def load_sides(first: Path, second: Path, question: Question, *, every: bool) -> Results:
    """Both as one; see ``two_sides``. Raises UsageError, DataError."""
    _refuse_table(first)
    _refuse_table(second)
    if root_of(first).resolve() == root_of(second).resolve():
        raise UsageError(f"{first} is named twice", then="its own variants are compared by: gpubench compare DIR")
    return two_sides(load(first), load(second), question, every=every)


def load_table(path: Path, columns: str | None, by: Sequence[str]) -> Results:
    """Of a user's table of samples.

    Args:
        columns: which column is which field, ``FIELD=COLUMN`` by commas.
        by: columns that identify a cell besides.

    Raises:
        UsageError: no file, or no such column.
        DataError: it can't be read.
    """
    mapping = {} if columns is None else parse_columns(columns, FIELDS)
    table, note = read_table(path, time_of(mapping))
    if note:
        _log.warning(f"{path}: {note}")
    frame = as_samples(table, path, mapping)
    if unknown := [name for name in by if name not in frame.columns]:
        raise UsageError(f"--by: the table has no column '{unknown[0]}'", then=f"it has {', '.join(table.columns)}")
    cost = next((column for column in COSTS if column.name == time_of(mapping)), None)
    return Results(
        kind="table",
        name=str(path),
        place=path,
        variants=frame["variant"].drop_nulls().cast(pl.String).unique(maintain_order=True).to_list(),
        keys=(),
        runs=(),
        family=functools.partial(_table_family, path, frame, list(by)),
        notes=[f"the figures are {cost.name}, {cost.meaning}: slower means more of it"] if cost else [],
        unit=cost.unit if cost else "s",
    )


def _table_family(path: Path, frame: pl.DataFrame, by: Sequence[str], question: Question) -> list[ComparisonInput]:
    """Of the candidate that is named, else of each variant, against the baseline: the first row's, if none is named."""
    variants = frame["variant"].drop_nulls().cast(pl.String).unique(maintain_order=True).to_list()
    baseline = question.baseline or next(iter(variants), None)
    others = [label for label in variants if label != baseline]
    if baseline is None or not others:
        names = f" ({variants[0]})" if variants else ""
        raise DataError(f"{path} has {counted(len(variants), 'variant')}{names}", then="a comparison needs two")
    if question.candidate == baseline:
        whose = "" if question.baseline else ", the variant of the first row"
        raise UsageError(f"{path}: {baseline} is the baseline{whose}", then=f"name another: --baseline {others[0]}")
    if question.baseline is None and (question.candidate is None or len(others) > 1):
        _log.warning(f"{path}: the baseline is {baseline}, the variant of the first row; --baseline names another")
    candidates = [question.candidate] if question.candidate else others
    return [part for label in candidates for part in comparisons_from_frame(frame, baseline, label, by)]
