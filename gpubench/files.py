"""Files that are there whole or not at all, whatever dies in between."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gpubench.errors import DataError, MissingToolError

_REMEDIES = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "your quota there is used up: free some space",
    errno.EACCES: "make the directory writable for you, or name another one",
    errno.EPERM: "make the directory writable for you, or name another one",
    errno.EROFS: "that file system is read-only: name another directory",
    errno.ENOTDIR: "a part of that path is a file: name another directory",
}


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write ``data`` (text as UTF-8) so that a reader sees the old file, the new one, but never a part; makes parents.

    Raises:
        MissingToolError: the disk is full, read-only or not ours. Nothing is half written, the old file still stands.
    """
    _write(path, data, lambda temporary: temporary.replace(path))


def write_many_atomically(files: Mapping[Path, bytes]) -> None:
    """Like ``write_atomically`` for each file, but the disk is asked to keep them together, which is faster.

    Raises:
        MissingToolError: as in ``write_atomically``, for the first file that fails; none or some of the others are new.
    """
    temporaries = {path: _temporary(path) for path in files}
    try:
        for path, temporary in temporaries.items():
            with writing(path):
                _make_directory(path.parent)
                with temporary.open("xb") as handle:
                    handle.write(files[path])
        for path, temporary in temporaries.items():
            with writing(path):
                _sync(temporary)
        for path, temporary in temporaries.items():
            with writing(path):
                temporary.replace(path)
        for directory in {path.parent for path in files}:
            with writing(directory):
                _sync(directory)
    finally:
        for temporary in temporaries.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def create_exclusively(path: Path, data: bytes | str) -> None:
    """Like ``write_atomically``, but only where nothing stands yet. Of two callers at once, one wins.

    Raises:
        FileExistsError: somebody else's file stands there already; it is untouched.
        MissingToolError: as in ``write_atomically``.
    """
    # A hard link is the one call that is exclusive like O_EXCL and yet shows the file with all its bytes at once.
    _write(path, data, lambda temporary: os.link(temporary, path))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into one line that names ``path``, the cause, and what to do.

    Raises:
        MissingToolError: instead of any OSError but FileExistsError.
    """
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        cause = error.strerror or str(error)
        raise MissingToolError(
            f"can't write {path}: {cause} (nothing is half written)",
            then=_REMEDIES.get(error.errno or 0, "see to the file system, then run the same command again"),
        ) from None


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into one line that names ``path``; a missing file stays FileNotFoundError.

    Raises:
        DataError: instead of any OSError but FileNotFoundError.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror or error}", then="see to its permissions") from None


def _write(path: Path, data: bytes | str, publish: Callable[[Path], object]) -> None:
    content = data.encode() if isinstance(data, str) else data
    temporary = _temporary(path)
    with writing(path):
        _make_directory(path.parent)
        try:
            with temporary.open("xb") as handle:
                handle.write(content)
                handle.flush()
                os.fsync(handle.fileno())
            publish(temporary)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        # Without this the rename itself can be forgotten by a power cut, although the file's bytes are safe.
        _sync(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # a file of that name; it must not be taken for an exclusive creation that came second
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
