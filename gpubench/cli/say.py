"""Lines for people."""

from __future__ import annotations

import sys

import typer


def say(line: str) -> None:
    """A line of progress or result on standard output, at once."""
    typer.echo(line)
    sys.stdout.flush()


def warn(line: str) -> None:
    """A line that deserves attention, on standard error."""
    typer.echo(f"gpubench: {line}", err=True)
