"""Runs read all at once and merged in any order, which no command does: to hold the merge of directories against."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from gpubench.errors import DataError
from gpubench.merge.samples import RunFiles
from gpubench.merge.table import BATCH, Merged, merge_batches, read_batches, run_key
from gpubench.store.rundirs import Records


@dataclasses.dataclass(frozen=True)
class Read:
    """The finished runs, and the errors of those that couldn't be read."""

    runs: tuple[RunFiles, ...]
    errors: tuple[DataError, ...]


def read_runs(runs_dir: Path) -> Read:
    """Every run directory that has a record."""
    errors: list[DataError] = []
    runs = [run for batch in read_batches(runs_dir, Records(), errors) for run in batch]
    return Read(tuple(runs), tuple(errors))


def merge(runs: Iterable[RunFiles]) -> Merged:
    """One row per sample of the runs, whatever their order and however often one is given."""
    ordered = sorted(runs, key=lambda run: run_key(run.record))
    return merge_batches(ordered[at : at + BATCH] for at in range(0, len(ordered), BATCH))
