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
from gpubench.report.export import Format, images
from gpubench.report.plots import effect_plot, efficiency_plot

PIPED_WIDTH = 80


def write_charts(inputs: ReportInputs, directory: Path, form: Format) -> None:
    """Every chart of the page into ``directory``, which is made where there is none; other files there stay.

    Raises:
        MissingToolError: it can't be written.
    """
    write_images(images(inputs, form), directory, f"no run of {inputs.plan.campaign} has a sample")


def write_images(drawn: Iterable[tuple[str, bytes]], directory: Path, why_none: str) -> None:
    """These files into ``directory``; raises MissingToolError where it can't be written."""
    count = 0
    for name, content in drawn:
        write_atomically(directory / name, content)
        count += 1
    say(f"charts: {count} in {directory}" if count else f"charts: none, {why_none}")


def show_charts(inputs: ReportInputs) -> None:
    """Effects and efficiency in plain characters, as wide as the terminal."""
    width = terminal_width()
    show_plots(
        [
            effect_plot(inputs.verdicts, inputs.settings.margin, width),
            efficiency_plot(curves(inputs.plan, inputs.cells), width),
        ]
    )


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
