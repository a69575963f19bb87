"""The command line: reads options, calls libraries, prints."""

from gpubench.cli.entry_point import main

__all__ = ["main"]
