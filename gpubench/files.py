"""Files that are there whole or not at all, whatever dies in between."""

import contextlib
import errno
import fcntl
import glob
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gpubench.errors import DataError, MissingToolError, UsageError

_REMEDIES = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "your quota there is used up: free some space",
    errno.EACCES: "make the directory writable for you, or name another one",
    errno.EPERM: "make the directory writable for you, or name another one",
    errno.EROFS: "that file system is read-only: name another directory",
    errno.ENOTDIR: "a part of that path is a file: name another directory",
    errno.ENOENT: "its directory was moved or removed meanwhile: name it where it is now",
}
_TRIES = 3
"""A writer whose temporary file vanishes was taken for dead in the moment before it locked the file: it begins anew."""


def write_atomically(path: Path, data: bytes | str, *, parents: bool = True, mode: int = 0o666) -> None:
    """Write ``data`` (text as UTF-8) so that a reader sees the old file, the new one, but never a part.

    Args:
        path: of the file.
        data: all of it.
        parents: make the directories above it; False where they were there when we began: one that was moved meanwhile
            doesn't come back with this file alone.
        mode: permissions of the new file, less the umask; never others, not even while it is written.

    Raises:
        UsageError: a device, a pipe or a socket has that name, which the file would replace.
        MissingToolError: the disk is full, read-only or not ours. Nothing is half written, the old file still stands.
    """
    _refuse_devices(path)
    _write(path, data, lambda temporary: temporary.replace(path), parents=parents, mode=mode)


def _refuse_devices(path: Path) -> None:
    in_devices = path.parent.resolve() == Path("/dev")
    if in_devices or (path.exists() and not (path.is_file() or path.is_dir())):
        raise UsageError(f"{path} is a device or a pipe, which a file can't replace", then="name a file")


def create_exclusively(path: Path, data: bytes | str) -> None:
    """Like ``write_atomically``, but only where nothing stands yet. Of two callers at once, one wins.

    Raises:
        FileExistsError: somebody else's file stands there already; it is untouched.
        MissingToolError: as in ``write_atomically``.
    """
    # A hard link is the one call that is exclusive like O_EXCL and yet shows the file with all its bytes at once.
    _write(path, data, lambda temporary: os.link(temporary, path))


def discard_dead(path: Path) -> None:
    """Remove a temporary file whose writer died before the rename; a living writer's is locked, and stays."""
    with contextlib.suppress(OSError), path.open("r+b") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


@contextlib.contextmanager
def locked(directory: Path, *, wait: bool = True) -> Iterator[int]:
    """Hold the directory's lock, which the kernel frees when its last holder ends; yields it, for a child to hold too.

    The directory itself is locked: files in it are replaced at each write, and a lock file would lie around.

    Raises:
        BlockingIOError: somebody else holds it, and ``wait`` is False.
        FileNotFoundError: there is no such directory.
    """
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def temporary_directory(name: str) -> Iterator[Path]:
    """A new directory ``gpubench-<name>-…`` among the system's temporary files, removed at the end.

    A process that is killed leaves its directory. The next call with the same ``name`` removes it: a directory whose
    process lives is locked.

    Raises:
        MissingToolError: the directory can't be made.
    """
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"gpubench-{glob.escape(name)}-*"):
        with contextlib.suppress(OSError):
            status = left.lstat()  # anybody may put a link there
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                with locked(left, wait=False):
                    shutil.rmtree(left)
    with contextlib.ExitStack() as stack:
        while True:
            with writing(base):
                path = Path(tempfile.mkdtemp(prefix=f"gpubench-{name}-", dir=base))
            with contextlib.suppress(OSError):  # a file system without locks: what a killed process leaves there stays
                stack.enter_context(locked(path))
            if path.is_dir():  # else another process removed it before it was locked
                break
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        yield path


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
            then=_REMEDIES.get(error.errno or 0, "check the file system, then run the same command again"),
        ) from None


@contextlib.contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn an OSError of the block into one line that names ``path``; a missing file stays FileNotFoundError.

    Raises:
        DataError: instead of any OSError but FileNotFoundError.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror or error}", then="check its permissions") from None


def _write(
    path: Path,
    data: bytes | str,
    publish: Callable[[Path], object],
    *,
    parents: bool = True,
    mode: int = 0o666,
) -> None:
    content = data.encode() if isinstance(data, str) else data
    with writing(path):
        if parents:
            _make_directory(path.parent)
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
            discard_dead(left)
        for tries_left in reversed(range(_TRIES)):
            try:
                temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
                _write_once(temporary, content, publish, mode)
                break
            except FileNotFoundError:
                if not tries_left or not path.parent.is_dir():
                    raise
        # Without this the rename itself can be forgotten by a power cut, although the file's bytes are safe.
        sync(path.parent)


def _write_once(temporary: Path, content: bytes, publish: Callable[[Path], object], mode: int) -> None:
    try:
        with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as handle:
            with contextlib.suppress(OSError):  # a file system without locks: there no writer is taken for dead
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
            publish(temporary)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # a file of that name; it must not be taken for an exclusive creation that came second
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None


def sync(path: Path) -> None:
    """Have the file, or the names in the directory, written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
