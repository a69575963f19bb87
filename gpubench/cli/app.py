"""The commands, and the one place where errors become one line and an exit code."""

import errno
import functools
import importlib
import io
import os
import signal
import sys
from typing import Annotated, Any

import typer

from gpubench import __version__
from gpubench.cli.say import print_error
from gpubench.errors import GpubenchError, InterruptedByUserError, MissingToolError

PARTS = {
    "campaign.commands": ("bench", "plan", "submit", "status", "logs", "cancel"),
    "workloads.commands": ("measure", "suites"),
    "clusters.commands": ("cluster",),
    "results.commands": ("compare", "report", "trend", "diff", "results"),
    "images.commands": ("images",),
    "sites.commands": ("sites",),
    "node_command": ("run",),
}
"""The commands that each module registers, in the order in which --help lists them."""
_UNPRINTABLE = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EROFS: "redirect the output to another file system",
    errno.EIO: "redirect the output to a file; its terminal or its disk is gone",
}
"""Faults of a disk: what helps where the standard output can't be written. Most files have words of their own."""
READER_GONE = 128 + signal.SIGPIPE
"""The shell's exit code for a program that wrote to a pipe after its reader had ended."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


def options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options that come before a command."""


def application(word: str | None = None) -> typer.Typer:
    """The command line; with ``word`` (a command's or a group's name) only that one is made, which is faster."""
    app = typer.Typer(
        name="gpubench",
        help="Did this version of UCX make distributed data science slower on this machine, and may I believe the "
        "answer?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for module, names in PARTS.items():
        if word is None or word in names:
            importlib.import_module(f"gpubench.cli.{module}").register(app)
    if word is not None:
        app.registered_commands = [
            one for one in app.registered_commands if one.callback and word in (one.name, one.callback.__name__)
        ]
        app.registered_groups = [one for one in app.registered_groups if one.name == word]
    return app


@functools.cache
def command(word: str | None = None) -> Any:
    """The command line of ``application``, put together once: that takes longer than most commands."""
    return typer.main.get_command(application(word))


def main() -> None:
    """Run the command line; every failure ends as one line on stderr and its documented exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us: a file of ours would get its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an arrow, say, where the locale has Latin letters only
    word = next(iter(sys.argv[1:]), None)
    try:
        command(word if any(word in names for names in PARTS.values()) else None)()
    except GpubenchError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # The command-line library turns a reader that has gone (``| head``) into 1, which is a bug's code here.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(READER_GONE)
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
        sys.exit(1)


def _is_of_ctrl_c(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused the error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
