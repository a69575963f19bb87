"""Runs merged in any order, which no command does: to hold the merge of directories against."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from gpubench.errors import DataError
from gpubench.results.merge.samples import FinishedRun
from gpubench.results.merge.table import Merged, finished_runs, merge_runs
from gpubench.store.rundirs import Records


@dataclasses.dataclass(frozen=True)
class Read:
    """The finished runs, and the errors of those that couldn't be read."""

    runs: tuple[FinishedRun, ...]
    errors: tuple[DataError, ...]


def read_runs(runs_dir: Path) -> Read:
    """Every run directory that has a record."""
    runs, errors = finished_runs(runs_dir, Records())
    return Read(tuple(runs), tuple(errors))


def merge(runs: Iterable[FinishedRun]) -> Merged:
    """One row per sample of the runs, whatever their order and however often one is given."""
    return merge_runs(list(runs))
