"""The command line: reads files and clocks, calls the pure parts, writes files, prints."""

import atexit
import os
import sys
import threading

from gpubench.cli import app

__all__ = ["main"]


def main() -> None:
    """Run the command line as a process of its own, and end this process at its end.

    Python would first free every object, which takes a sixth of a short command's time and a second after a large one.
    What is registered to happen at the exit happens, and everything printed is written; mypy ends in the same way.
    """
    code: int | None = 0
    try:
        app.main()
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code
    if threading.active_count() == 1 and _flushed():
        atexit._run_exitfuncs()
        if _flushed():
            os._exit(code or 0)
    sys.exit(code)


def _flushed() -> bool:
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return False  # Python's own exit says so
    return True
