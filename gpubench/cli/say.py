"""Lines for people. All output goes through here (or ``Terminal``), where text from files is escaped."""

import logging
import sys
from collections.abc import Iterable

import typer

from gpubench.errors import GpubenchError
from gpubench.model.text import LONGEST_ADVICE, LONGEST_ERROR, cut_inside, visible


def say(line: str) -> None:
    """A line of progress or result on standard output, at once."""
    typer.echo(visible(line))
    sys.stdout.flush()


def say_lines(lines: Iterable[str]) -> None:
    """Lines of progress or result, each at once."""
    for line in lines:
        say(line)


def say_text(text: str) -> None:
    """A document of several lines, like JSON."""
    for line in text.rstrip("\n").split("\n"):
        typer.echo(visible(line))
    sys.stdout.flush()


def warn(line: str) -> None:
    """A line that deserves attention, on standard error."""
    typer.echo(visible(f"gpubench: {line}"), err=True)


def print_error(error: GpubenchError | str) -> None:
    """The line of each failure, on standard error: what is wrong, then what to do next, long ones cut inside."""
    for failure in error.every if isinstance(error, GpubenchError) else [GpubenchError(error)]:
        what = cut_inside(visible(f"gpubench: {failure.what}"), LONGEST_ERROR)
        then = cut_inside(visible(failure.then), LONGEST_ADVICE)
        typer.echo(f"{what}; {then}" if then else what, err=True)


class _Shown(logging.Handler):
    """What the libraries below the command line log: progress on standard output, warnings on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if record.levelno >= logging.WARNING:
            warn(line)
        else:
            say(line)


def show_log() -> None:
    """Show from now on what gpubench's modules log."""
    log = logging.getLogger("gpubench")
    log.setLevel(logging.INFO)
    if not any(isinstance(handler, _Shown) for handler in log.handlers):
        log.addHandler(_Shown())
