"""Kind ``conda``: a prefix on a file system that every node sees, named by all that went into it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import shutil
from pathlib import Path

from gpubench.images.kinds.base import Entry, ImagePaths, Leftover, Needed, Obtained, Order, obtain_installed
from gpubench.images.kinds.base import installed_ready as ready
from gpubench.images.rows import prefix_image

__all__ = ["ON_DEMAND", "entries", "leftovers", "obtain", "ready"]

ON_DEMAND = False


def obtain(order: Order) -> Obtained:
    """What ``images build`` has locked; a prefix takes too long to make it by the way."""
    return obtain_installed(order, "conda", prefix_image)


def entries(places: ImagePaths) -> list[Entry]:  # noqa: ARG001 - of every kind
    """None: a prefix that no row names belongs to nobody, see ``images prune``."""
    return []


def leftovers(places: ImagePaths, needed: Needed) -> list[Leftover]:
    """Prefixes that no row and no campaign names, finished or not, but for those that somebody is making now."""
    return [
        Leftover(f"conda prefix {path}", 0, functools.partial(_remove, path))
        for path in sorted(lock.with_suffix("") for lock in (places.root.resolve() / "conda").glob("*-*.lock"))
        if path.is_dir()
        and not needed.path(path)
        and not any(row.python.startswith(f"{path}/") for row in needed.rows)
        and not _in_the_making(path)
    ]


def _in_the_making(path: Path) -> bool:
    """Whether ``create.sh`` holds the prefix's lock."""
    with contextlib.suppress(OSError), _lock_of(path).open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _remove(path: Path) -> None:
    shutil.rmtree(path)
    _lock_of(path).unlink(missing_ok=True)


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")
