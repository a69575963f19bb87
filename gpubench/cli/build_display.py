"""The progress of builds: bars on a terminal, lines elsewhere."""

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence

import rich.markup
import rich.progress
import rich.table

from gpubench.cli.say import say
from gpubench.cli.terminal import Terminal
from gpubench.images.docker.build import Display


class PlainLines:
    """A line per step, without the progress inside a step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}

    def step(self, name: str, text: str, share: float) -> None:  # noqa: ARG002 - bars show it
        """A new step of a version."""
        with self._lock:
            if self._texts.get(name) != text:
                self._texts[name] = text
                say(f"{name}: {text}")

    def done(self, name: str) -> None:
        """A version is finished."""
        with self._lock:
            say(f"{name}: done")

    def fail(self, name: str, line: str) -> None:
        """A version failed."""
        with self._lock:
            say(f"{name}: failed: {line}")


class Bars:
    """A bar per version."""

    def __init__(self, progress: rich.progress.Progress, names: Sequence[str]) -> None:
        self._progress = progress
        self._tasks = {name: progress.add_task(rich.markup.escape(name), total=1.0, text="waiting") for name in names}

    def step(self, name: str, text: str, share: float) -> None:
        """Move a version's bar."""
        self._progress.update(self._tasks[name], completed=share, text=rich.markup.escape(text))

    def done(self, name: str) -> None:
        """Fill it."""
        self._progress.update(self._tasks[name], completed=1.0, text="done")

    def fail(self, name: str, line: str) -> None:
        """Stop the bar, and print the whole reason above the bars."""
        self._progress.update(self._tasks[name], text="[red]failed")
        self._progress.stop_task(self._tasks[name])
        self._progress.console.print(f"{name}: failed: {line}", markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def build_display(names: Sequence[str]) -> Iterator[Display]:
    """Bars on a terminal, lines elsewhere; ``names`` are the versions."""
    if not sys.stdout.isatty():
        yield PlainLines()
        return
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(bar_width=24),
        rich.progress.TimeElapsedColumn(),
        # The step is cut where the line ends: it may be a whole shell command.
        rich.progress.TextColumn("{task.fields[text]}", table_column=rich.table.Column(no_wrap=True, ratio=1)),
    )
    with rich.progress.Progress(*columns, console=Terminal(), expand=True) as progress:
        yield Bars(progress, names)
