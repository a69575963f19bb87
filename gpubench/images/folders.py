"""Folders that are either finished or not there, whoever builds them at once and whatever kills the builder.

``HOME/<name>/`` holds ``files/`` (the content), ``inventory.json`` (what ``files/`` held when it was built) and
``image.json`` (facts and content hash). It is built under ``HOME/.building/`` by whoever holds the lock ``HOME/.lock``,
and comes into being by one rename. The files are compared with the inventory cheaply at each start.
"""

import contextlib
import ctypes
import dataclasses
import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, MissingToolError, UsageError
from gpubench.files import sync
from gpubench.node.spec.plain import content_id

WAIT_S = 3600.0
"""How long one builder waits for another; each of its steps is bounded by the installer's own deadline."""

Progress = Callable[[str], None]
"""Gets one line for each step that a user waits for."""

Row = tuple[int, int, str]
"""Size in bytes, modification time in ns, SHA-256 of the bytes (of the target, for a symbolic link)."""
_BYTECODE = "__pycache__"
# uv's notes on how it installed; they hold paths and times, so they differ where the content doesn't.
_INSTALLER_NOTES = {
    ".lock",
    "CACHEDIR.TAG",
    "INSTALLER",
    "RECORD",
    "REQUESTED",
    "direct_url.json",
    "pyvenv.cfg",
    "uv_cache.json",
}
SCHEMA = "gpubench/image-folder/1"
BUILDING = ".building"
Build = Callable[[Path, int], dict[str, Any]]
"""Fills the folder that it is given, under the lock whose descriptor it is given; returns the facts about it."""


@contextlib.contextmanager
def only_builder(home: Path, progress: Progress) -> Iterator[int]:
    """Hold the lock of ``home``; the kernel frees it when the last process that holds it ends, however it ends."""
    with (home / ".lock").open("a") as file:
        waits = False
        deadline = time.monotonic() + WAIT_S
        while not _try_lock(file.fileno()):
            if not waits:
                progress(f"waiting: another gpubench is building images in {home}")
                waits = True
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


def record_files(folder: Path) -> dict[str, Row]:
    """Every file below ``folder`` but bytecode, by relative path."""
    statuses = dict(sorted(_files(folder).items()))
    digests = _digests(folder, statuses)
    return {path: (*status, digest) for (path, status), digest in zip(statuses.items(), digests, strict=True)}


def content_hash(rows: dict[str, Row]) -> str:
    """Identity of the content: the same on every machine, wherever the folder lies and whenever it was made.

    ``bin/`` is left out: of a venv it holds links to this machine's Python and scripts with this folder's path.
    """
    return content_id(
        {
            path: digest
            for path, (_, _, digest) in rows.items()
            if not path.startswith("bin/") and path.rpartition("/")[2] not in _INSTALLER_NOTES
        },
        length=64,
    )


def changed_files(folder: Path, rows: dict[str, Row]) -> list[str]:
    """Files that were changed, removed or added since ``rows`` was recorded, sorted.

    Size and time decide, and only where they differ the bytes.
    """
    here = _files(folder)
    suspects = [path for path in here.keys() & rows.keys() if here[path] != rows[path][:2]]
    digests = _digests(folder, suspects)
    changed = [path for path, digest in zip(suspects, digests, strict=True) if digest != rows[path][2]]
    return sorted({*changed, *(here.keys() ^ rows.keys())})


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file and symbolic link, by relative path. Made for 10,000 files at each start."""
    statuses = {}
    folders = [("", str(folder))]
    while folders:
        prefix, path = folders.pop()
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    statuses[prefix + entry.name] = (status.st_size, status.st_mtime_ns)
                # Python may add bytecode while it runs; it is a function of the sources, which are all recorded.
                elif entry.name != _BYTECODE:
                    folders.append((f"{prefix}{entry.name}/", entry.path))
    return statuses


def _digests(folder: Path, paths: Iterable[str]) -> list[str]:
    """The SHA-256 of each; a task of a thread is many files, because most of them are small."""
    whole = [f"{folder}/{path}" for path in paths]
    with ThreadPoolExecutor() as pool:
        chunks = pool.map(lambda at: [*map(_digest, whole[at : at + _AT_ONCE])], range(0, len(whole), _AT_ONCE))
        return [digest for several in chunks for digest in several]


_AT_ONCE = 100
_PART = 1 << 20
"""Bytes that are read at once: all of nearly every file."""


def _digest(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return hashlib.sha256(b"link " + os.fsencode(os.readlink(path))).hexdigest()  # noqa: PTH115 - 10,000 of them
    try:
        digest = hashlib.sha256(os.read(descriptor, _PART))
        while part := os.read(descriptor, _PART):
            digest.update(part)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


Sound = Callable[["Folder"], None]
"""Raises DataError where a folder whose files are as they were built can't be used all the same."""


@dataclasses.dataclass(frozen=True)
class Folder:
    """A finished folder: its content hash and the facts that its builder recorded."""

    path: Path
    content: str
    facts: dict[str, Any]

    @property
    def files(self) -> Path:
        return self.path / "files"

    @property
    def size(self) -> int:
        """Bytes of its files as they were recorded."""
        rows = json.loads((self.path / "inventory.json").read_text("utf-8"))
        return sum(int(row[0]) for row in rows.values())


def obtain(home: Path, name: str, build: Build, progress: Progress, *, sound: Sound | None = None) -> Folder:
    """The finished folder ``name``, built now if it is missing, and built anew if it is damaged.

    ``sound`` raises DataError where more than the files is wrong. What is built is a function of ``name``, so a folder
    that is built anew is the one that it was; a process that still runs in it finds the same files.

    Raises:
        DataError: what was built just now is damaged.
        UsageError: ``home`` can't be written.
        MissingToolError: disk full, another builder that doesn't end, or what ``build`` raises.
    """
    path = home / name

    def checked() -> Folder:
        folder = read_sound(path)
        if sound:
            sound(folder)
        return folder

    with _one_line(home):
        try:
            if path.exists():
                folder = checked()
                _clear(home)
                return folder
        except DataError:
            pass  # looked at again under the lock: another builder may have made it anew
        home.mkdir(parents=True, exist_ok=True)
        with only_builder(home, progress) as hold:
            try:
                if path.exists():
                    return checked()
            except DataError as damage:
                progress(f"{damage.what}; it is built again")
            _build(home, name, build, hold)
        return checked()


def read(path: Path) -> Folder:
    """A finished folder's facts. Raises DataError: its marker is missing or can't be read."""
    try:
        plain = json.loads((path / "image.json").read_text("utf-8"))
        if plain["schema"] != SCHEMA:
            raise ValueError(plain["schema"])
        return Folder(path=path, content=plain["content"], facts=plain["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        raise _damaged(path, "its image.json is missing or can't be read") from None


def read_sound(path: Path) -> Folder:
    """A finished folder whose files are as they were built; raises DataError: one was changed, removed or added."""
    folder = read(path)
    try:
        rows = {name: tuple(row) for name, row in json.loads((path / "inventory.json").read_text("utf-8")).items()}
        changed = changed_files(folder.files, rows)
    except (OSError, ValueError, AttributeError, TypeError):
        raise _damaged(path, "its files or inventory.json can't be read") from None
    if not changed and content_hash(rows) != folder.content:
        changed = ["inventory.json"]
    if changed:
        raise _damaged(path, f"{len(changed)} of its files changed since it was built, first {changed[0]}")
    return folder


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"image folder {path} is damaged: {why}",
        then="the next plan or bench of its version builds it again; don't trust what this campaign has measured in it",
    )


def _clear(home: Path) -> None:
    """Remove what a builder left that was killed behind its last step: no later build comes to do so."""
    site = home / BUILDING
    if site.exists():
        with contextlib.suppress(OSError), (home / ".lock").open("a") as file:  # images may be another user's
            if _try_lock(file.fileno()):  # else somebody builds there
                shutil.rmtree(site, ignore_errors=True)


def _build(home: Path, name: str, build: Build, hold: int) -> None:
    site = home / BUILDING
    # Under the lock nobody else builds: whatever lies here was left by a builder that was killed.
    shutil.rmtree(site, ignore_errors=True)
    temporary = site / name
    try:
        (temporary / "files").mkdir(parents=True)
        facts = build(temporary / "files", hold)
        rows = record_files(temporary / "files")
        marker = {"schema": SCHEMA, "name": name, "content": content_hash(rows), "facts": facts}
        (temporary / "inventory.json").write_text(json.dumps(rows), "utf-8")
        (temporary / "image.json").write_text(json.dumps(marker, indent=1, sort_keys=True) + "\n", "utf-8")
        # One call for 10,000 files; a machine that dies now leaves no finished name with empty files.
        _sync_file_system(temporary)
        if (home / name).exists():
            (home / name).rename(site / "damaged")
        temporary.rename(home / name)
        sync(home)
    finally:
        shutil.rmtree(site, ignore_errors=True)


def _sync_file_system(folder: Path) -> None:
    """syncfs(2). sync(2) would wait for all other file systems, too: for one whose server is down, for ever.

    Raises OSError: a file wasn't stored after all, where a quota of a file server was used up, say.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _one_line(home: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # who reads our output has gone
        raise
    except OSError as error:
        where = error.filename or home
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise MissingToolError(
                f"the disk is full: could not write {where}; finished images are untouched",
                then="free some space (a stack takes up to 1.1 GB, a UCX version 0.15 GB) and run it again",
            ) from None
        raise UsageError(
            f"images can't be built in {home}: {error.strerror or error} ({where})",
            then="name a folder that you may write: --set paths.images=DIR",
        ) from None
