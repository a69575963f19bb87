"""Errors of the tool become one line and an exit code; those of the node half do in ``node/main``."""

import errno
import io
import os
import signal
import sys

from gpubench.cli.application import PARTS, command
from gpubench.cli.say import print_error
from gpubench.errors import EXIT_READER_GONE, GpubenchError, InterruptedByUserError, MissingToolError

_UNPRINTABLE = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EROFS: "redirect the output to another file system",
    errno.EIO: "redirect the output to a file; its terminal or its disk is gone",
}
"""Faults of a disk: what helps where the standard output can't be written. Most files have words of their own."""


def main() -> None:
    """Run the command line; every failure ends as one line on stderr and its documented exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us: a file of ours would get its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an arrow, say, where the locale has Latin letters only
    _end_as_by_ctrl_c()
    word = next(iter(sys.argv[1:]), None)
    try:
        command(word if any(word in names for names in PARTS.values()) else None)()
    except GpubenchError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # The command-line library turns a reader that has gone (``| head``) into 1, which is a bug's code here.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(EXIT_READER_GONE)
        if _is_of_ctrl_c(end):
            print_error("interrupted")
        raise
    except Exception as error:  # noqa: BLE001 - whatever arrives here is a bug of ours; say so, and keep the details
        if _is_of_ctrl_c(error):  # a library's clean-up stumbled: zipfile can't close what it was writing, say
            print_error("interrupted")
            sys.exit(InterruptedByUserError.exit_code)
        if isinstance(error, OSError) and error.errno in _UNPRINTABLE:
            if error.filename is not None:
                print_error(MissingToolError(f"can't use {error.filename}: {error.strerror}", then="check that disk"))
                sys.exit(MissingToolError.exit_code)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still to be printed would fail at the very end again
            then = _UNPRINTABLE[error.errno]
            print_error(MissingToolError(f"can't print any further: {error.strerror}", then=then))
            sys.exit(MissingToolError.exit_code)
        import tempfile
        import traceback

        with tempfile.NamedTemporaryFile("w", prefix="gpubench-bug-", suffix=".txt", delete=False) as out:
            traceback.print_exc(file=out)
        what = f"a bug in gpubench: {type(error).__name__}: {error}"
        print_error(GpubenchError(what, then=f"please report it with {out.name}"))
        sys.exit(GpubenchError.exit_code)


def _end_as_by_ctrl_c() -> None:
    """What Ctrl-C cleans up is cleaned up also where a terminal is closed, or ``timeout`` or a queue ends us."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores the second
            signal.signal(number, signal.default_int_handler)


def _is_of_ctrl_c(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused the error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
