"""``images.lock.toml`` in the current directory, read and written whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpubench.errors import MissingToolError
from gpubench.files import write_atomically
from gpubench.model.images_lock import LOCK_FILE, ImagesLock, LockRow


def read_lock() -> ImagesLock:
    """The rows of the current directory's file, none where there is no file; raises UsageError, DataError."""
    path = Path(LOCK_FILE)
    try:
        return ImagesLock.parse(path.read_text("utf-8"), str(path))
    except FileNotFoundError:
        return ImagesLock()
    except OSError as error:
        raise MissingToolError(f"can't read {path}: {error.strerror}") from None


def add_rows(rows: Iterable[LockRow]) -> None:
    """Put the rows in place of those of the same place; two at once lose none of each other's."""
    new = list(rows)
    if new:
        with _alone(Path.cwd()):
            write_atomically(Path.cwd() / LOCK_FILE, read_lock().with_rows(new).dump())


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    # The directory itself is locked: the file is replaced at each write, and a lock file would lie around.
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
