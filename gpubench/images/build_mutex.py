"""One builder at a time below a folder of images."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gpubench.errors import MissingToolError

WAIT_S = 3600.0
"""How long one builder waits for another; each of its steps is bounded by the installer's own deadline."""

Progress = Callable[[str], None]
"""Gets one line for each step that a user waits for."""


@contextlib.contextmanager
def only_builder(home: Path, progress: Progress) -> Iterator[int]:
    """Hold the lock of ``home``; the kernel frees it when the last process that holds it ends, however it ends."""
    with (home / ".lock").open("a") as file:
        told = False
        deadline = time.monotonic() + WAIT_S
        while not _try_lock(file.fileno()):
            if not told:
                progress(f"waiting: another gpubench is building images in {home}")
                told = True
            if time.monotonic() > deadline:
                raise MissingToolError(
                    f"another gpubench has been building images in {home} for an hour",
                    then="end it, or use another paths.images",
                )
            time.sleep(0.2)
        yield file.fileno()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
