"""Files that are either whole or absent, also after a power cut."""

import contextlib
import os
from pathlib import Path


def write_atomic(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write ``data`` to a temporary name beside ``path``, sync file and directory, and rename.

    ``mode`` are the permissions of the file, less the umask; never others, not even while it is written.

    Raises:
        OSError: the file can't be written; ``path`` is then as it was before.
    """
    name = str(path.with_name(f".{path.name}.{os.urandom(4).hex()}"))
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
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
