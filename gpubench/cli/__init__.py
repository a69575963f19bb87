"""The command line: reads files and clocks, calls the pure parts, writes files, prints."""

from gpubench.cli.app import main

__all__ = ["main"]
