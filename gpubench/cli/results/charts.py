"""The report's charts outside of its page: as files, and in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import rich.console

from gpubench.cli.say import say
from gpubench.files import write_atomically

PIPED_WIDTH = 80


def write_images(drawn: Iterable[tuple[str, bytes]], directory: Path, why_none: str) -> None:
    """These files into ``directory``; raises MissingToolError where it can't be written."""
    count = 0
    for name, content in drawn:
        write_atomically(directory / name, content)
        count += 1
    say(f"charts: {count} in {directory}" if count else f"charts: none, {why_none}")


def terminal_width() -> int:
    """Columns of the terminal, or what a file gets."""
    return rich.console.Console().width if sys.stdout.isatty() else PIPED_WIDTH


def show_plots(plots: Iterable[Iterable[str]]) -> None:
    """Each with a blank line before it."""
    for plot in plots:
        for number, line in enumerate(plot):
            if number == 0:
                say("")
            say(line)
