"""Programs that build images: none outlives gpubench, what they print is kept, and logins in it are not."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_LOGIN = re.compile(r"(?<=//)[^/@\s]+@")
# PR_SET_PDEATHSIG (prctl(2)): a killed gpubench leaves nothing behind that goes on fetching.
_DIE_WITH_PARENT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"


def without_logins(text: str) -> str:
    """The text without the ``USER:PASSWORD@`` of its addresses."""
    return _LOGIN.sub("", text)


def die_with_parent(words: Sequence[str]) -> list[str]:
    """The command line of a program that is killed when the thread that starts it ends."""
    return [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, *words]


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a program of ``started`` and whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def started(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program whose output, errors too, is ``stdout``; it is killed with all that it started if the block raises."""
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        **options,
    ) as process:
        try:
            yield process
        except BaseException:
            kill_group(process)
            raise


class Log:
    """Appends to a file. A disk that is full is reported by what failed, not by its log."""

    def __init__(self, path: Path) -> None:
        self._file = None
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8", buffering=1)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def write(self, line: str) -> None:
        """One line, on disk at once."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write(f"{line}\n")
