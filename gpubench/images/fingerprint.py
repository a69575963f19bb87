"""What files a folder holds: recorded once when it is built, compared cheaply at each start."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpubench.spec.plain import content_id

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


def record(folder: Path) -> dict[str, Row]:
    """Every file below ``folder`` but bytecode, by relative path."""
    found = dict(sorted(_files(folder)))
    with ThreadPoolExecutor() as pool:
        digests = pool.map(lambda path: _digest(folder / path), found)
    return {path: (*status, digest) for (path, status), digest in zip(found.items(), digests, strict=True)}


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


def changes(folder: Path, rows: dict[str, Row], *, deep: bool) -> list[str]:
    """Files that were changed, removed or added since ``rows`` was recorded, sorted.

    Size and time decide, and only where they differ the bytes; ``deep`` reads all bytes.
    """
    here = dict(_files(folder))
    suspects = [path for path in here.keys() & rows.keys() if deep or here[path] != rows[path][:2]]
    with ThreadPoolExecutor() as pool:
        digests = pool.map(lambda path: _digest(folder / path), suspects)
    changed = [path for path, digest in zip(suspects, digests, strict=True) if digest != rows[path][2]]
    return sorted({*changed, *(here.keys() ^ rows.keys())})


def _files(folder: Path, prefix: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """Relative path, and size and time, of every file and symbolic link."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                yield prefix + entry.name, (status.st_size, status.st_mtime_ns)
            # Python may add bytecode while it runs; it is a function of the sources, which are all recorded.
            elif entry.name != _BYTECODE:
                yield from _files(Path(entry.path), f"{prefix}{entry.name}/")


def _digest(path: Path) -> str:
    if path.is_symlink():
        return hashlib.sha256(b"link " + os.fsencode(path.readlink())).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
