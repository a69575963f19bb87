"""The command line: reads options, calls libraries, prints."""

from gpubench.cli.app import main

__all__ = ["main"]
