"""Files that are either whole or absent, also after a power cut."""

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomic(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write ``data`` to a temporary name beside ``path``, sync file and directory, and rename.

    Raises:
        OSError: the file can't be written; ``path`` is then as it was before.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=str(path.parent))
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        os.replace(name, str(path))  # noqa: PTH105 - the node half keeps to one rename call that 3.9 types well
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a rename in ``path`` durable; file systems that can't sync a directory are left alone."""
    handle = os.open(str(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
