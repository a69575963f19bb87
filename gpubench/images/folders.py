"""Folders that are either finished or not there, whoever builds them at once and whatever kills the builder.

``HOME/<name>/`` holds ``files/`` (the content), ``inventory.json`` (what ``files/`` held when it was built) and
``image.json`` (facts and content hash). It is built under ``HOME/.building/`` by whoever holds the lock ``HOME/.lock``,
and comes into being by one rename.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, GpubenchError, MissingToolError, UsageError
from gpubench.images import fingerprint
from gpubench.images.build_mutex import Progress, only_builder

SCHEMA = "gpubench/image-folder/1"

Build = Callable[[Path, int], dict[str, Any]]
"""Fills the folder that it is given, under the lock whose descriptor it is given; returns the facts about it."""

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
        """Where the content lies."""
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
                return checked()
        except DataError:
            pass  # looked at again under the lock: another builder may have made it anew
        home.mkdir(parents=True, exist_ok=True)
        with only_builder(home, progress) as hold:
            try:
                if path.exists():
                    return checked()
            except DataError as damage:
                progress(f"{damage.what}; it is built anew")
            _build(home, name, build, hold)
        return checked()


def read_sound(path: Path) -> Folder:
    """A finished folder whose files are as they were built; raises DataError for any other."""
    folder = read(path)
    check(folder, deep=False)
    return folder


def read(path: Path) -> Folder:
    """A finished folder's facts.

    Raises:
        DataError: its marker is missing or can't be read.
    """
    try:
        plain = json.loads((path / "image.json").read_text("utf-8"))
        if plain["schema"] != SCHEMA:
            raise ValueError(plain["schema"])
        return Folder(path=path, content=plain["content"], facts=plain["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        raise _damaged(path, "its image.json is missing or can't be read") from None


def check(folder: Folder, *, deep: bool) -> None:
    """Compare the folder with what was built; ``deep`` reads every byte.

    Raises:
        DataError: a file was changed, removed or added.
    """
    try:
        rows = {
            path: tuple(row) for path, row in json.loads((folder.path / "inventory.json").read_text("utf-8")).items()
        }
        changed = fingerprint.changes(folder.files, rows, deep=deep)
    except (OSError, ValueError, AttributeError, TypeError):
        raise _damaged(folder.path, "its files or inventory.json can't be read") from None
    if not changed and fingerprint.content_hash(rows) != folder.content:
        changed = ["inventory.json"]
    if changed:
        raise _damaged(folder.path, f"{len(changed)} of its files changed since it was built, first {changed[0]}")


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"image folder {path} is damaged: {why}",
        then="the next plan or bench of its version builds it anew; what this campaign has measured in it is doubtful",
    )


def _build(home: Path, name: str, build: Build, hold: int) -> None:
    site = home / ".building"
    # Under the lock nobody else builds: whatever lies here was left by a builder that was killed.
    shutil.rmtree(site, ignore_errors=True)
    temporary = site / name
    try:
        (temporary / "files").mkdir(parents=True)
        facts = build(temporary / "files", hold)
        rows = fingerprint.record(temporary / "files")
        marker = {"schema": SCHEMA, "name": name, "content": fingerprint.content_hash(rows), "facts": facts}
        (temporary / "inventory.json").write_text(json.dumps(rows), "utf-8")
        (temporary / "image.json").write_text(json.dumps(marker, indent=1, sort_keys=True) + "\n", "utf-8")
        os.sync()  # one call for 10,000 files; a machine that dies now leaves no finished name with empty files
        if (home / name).exists():
            (home / name).rename(site / "damaged")
        temporary.rename(home / name)
        _sync_folder(home)
    finally:
        shutil.rmtree(site, ignore_errors=True)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _one_line(home: Path) -> Iterator[None]:
    try:
        yield
    except GpubenchError:
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
