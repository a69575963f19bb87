"""The report's charts outside of its page: as files, and in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import rich.console

from gpubench.cli.say import say
from gpubench.files import write_atomically
from gpubench.merge.curves import curves
from gpubench.report import ReportInputs
from gpubench.report.export import Format
from gpubench.report.plots import effect_plot, efficiency_plot

PIPED_WIDTH = 80


def in_forms(svg: Path | None, png: Path | None) -> list[tuple[Path, Format]]:
    """Where charts are wished, and in which form."""
    wished: list[tuple[Path | None, Format]] = [(svg, "svg"), (png, "png")]
    return [(where, form) for where, form in wished if where is not None]


def write_files(files: Iterable[tuple[str, bytes]], directory: Path) -> None:
    """Charts into ``directory``, which is made where there is none; other files there stay.

    Raises:
        MissingToolError: it can't be written.
    """
    count = 0
    for name, content in files:
        write_atomically(directory / name, content)
        count += 1
    say(f"charts: {count} in {directory}" if count else "charts: none, there is no sample to draw")


def show_charts(inputs: ReportInputs) -> None:
    """Effects and efficiency in plain characters, as wide as the terminal."""
    width = rich.console.Console().width if sys.stdout.isatty() else PIPED_WIDTH
    plots = (
        effect_plot(inputs.verdicts, inputs.settings.margin, width),
        efficiency_plot(curves(inputs.plan, inputs.cells), width),
    )
    for plot in plots:
        for number, line in enumerate(plot):
            say(line if number else f"\n{line}")
