"""A campaign's run directories, merged while they are read: their text is never held all at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gpubench.errors import DataError
from gpubench.merge.read import read_batches
from gpubench.merge.table import Merged, merge_batches
from gpubench.store.rundirs import Records


def merge_directory(runs_dir: Path, records: Records | None = None) -> Merged:
    """All samples of the finished runs below ``runs_dir``, with the errors of runs that can't be read.

    ``records`` are those that have been read already; more come to it.
    """
    unread: list[DataError] = []
    merged = merge_batches(read_batches(runs_dir, records or Records(), unread))
    return dataclasses.replace(merged, errors=(*unread, *merged.errors))
