"""The command line in the test's own process: what a process of its own would print, and its exit code.

A process of its own spends most of a short command's time on imports. Here nothing differs between two commands but
words, directory and environment, so they share the imports.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from typer.testing import CliRunner

from gpubench.cli.application import command
from gpubench.cli.entry_point import main

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)


def run(
    words: Sequence[str | Path], directory: Path, environment: Mapping[str, str], *, one_stream: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``gpubench WORDS`` in ``directory`` with exactly this environment and an empty standard input.

    The file descriptors 1 and 2 are redirected, so what child processes print counts, too.
    """
    arguments = ["gpubench", *map(str, words)]
    with contextlib.ExitStack() as undo, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        undo.enter_context(_environment(environment))
        undo.enter_context(contextlib.chdir(directory))
        undo.enter_context(_streams(out, out if one_stream else err))
        for number in SIGNALS:
            undo.callback(signal.signal, number, signal.getsignal(number))
        argv, sys.argv = sys.argv, arguments
        undo.callback(setattr, sys, "argv", argv)
        code = _exit_code()
        undo.close()
        texts = [_read(stream) for stream in (out, err)]
    return subprocess.CompletedProcess(arguments, code, *texts)


@dataclasses.dataclass(frozen=True)
class Invoked:
    """What a command has printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str
    output: str
    exception: BaseException | None


def invoked(*words: str | Path) -> Invoked:
    """Run ``gpubench WORDS`` in the test's own directory and environment; an error stays an exception.

    This does what typer's ``CliRunner().invoke`` does. That one builds all commands anew at each call, which takes
    longer than most commands.
    """
    exit_code, exception = 0, None
    with CliRunner().isolation() as streams:
        try:
            command().main(args=[str(word) for word in words], prog_name="gpubench")
        except SystemExit as end:
            exit_code, exception = int(end.code or 0), end if end.code else None
        except Exception as error:  # noqa: BLE001 - what the test asks about
            exit_code, exception = 1, error
        sys.stdout.flush()
        sys.stderr.flush()
        stdout, stderr, output = (stream.getvalue().decode() for stream in streams)
    return Invoked(exit_code, stdout, stderr, output, exception)


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0


@contextlib.contextmanager
def _environment(environment: Mapping[str, str]) -> Iterator[None]:
    before, temporary = dict(os.environ), tempfile.tempdir
    try:
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # asked of TMPDIR again
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = temporary


@contextlib.contextmanager
def _streams(out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Standard input from nowhere, standard output and error into these files: the descriptors and Python's objects."""
    objects = sys.stdin, sys.stdout, sys.stderr
    for stream in objects[1:]:
        stream.flush()
    saved = [os.dup(number) for number in range(3)]
    try:
        with Path(os.devnull).open("rb") as nowhere:
            for number, stream in enumerate((nowhere, out, err)):
                os.dup2(stream.fileno(), number)
        sys.stdin = _text(0, "r")
        sys.stdout = _text(1, "w")
        sys.stderr = _text(2, "w", errors="backslashreplace", line_buffering=True)
        yield
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = objects
        for number, descriptor in enumerate(saved):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _text(number: int, mode: str, *, errors: str = "strict", line_buffering: bool = False) -> io.TextIOWrapper:
    binary = io.FileIO(number, mode, closefd=False)
    buffered = io.BufferedReader(binary) if mode == "r" else io.BufferedWriter(binary)
    return io.TextIOWrapper(buffered, encoding="utf-8", errors=errors, line_buffering=line_buffering)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()
