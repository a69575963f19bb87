"""``images.lock.toml`` in the current directory, read and written whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpubench.errors import MissingToolError
from gpubench.files import locked, write_atomically
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
        with locked(Path.cwd()):
            write_atomically(Path.cwd() / LOCK_FILE, read_lock().with_rows(new).dump())
