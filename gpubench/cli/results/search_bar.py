"""How far the search for changes is, which may take seconds for years of nights."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import rich.progress

from gpubench.cli.terminal import Terminal


@contextlib.contextmanager
def search_bar() -> Iterator[Callable[[int, int], None]]:
    """What is to be told of series searched, and of how many; on a terminal it shows a bar until the end."""
    if not sys.stdout.isatty():
        yield lambda _done, _all: None
        return
    with rich.progress.Progress(console=Terminal(), transient=True) as progress:
        task = progress.add_task("series searched for changes", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
