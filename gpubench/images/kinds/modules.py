"""Kind ``modules``: software that the site itself installs; the image is what loading it was found to bring."""

from __future__ import annotations

import functools
import shutil

from gpubench.images.kinds.base import Entry, ImagePaths, Leftover, Needed, Obtained, Order, obtain_installed
from gpubench.images.kinds.base import installed_ready as ready
from gpubench.images.rows import modules_folder, modules_image

__all__ = ["ON_DEMAND", "entries", "leftovers", "obtain", "ready"]

ON_DEMAND = False


def obtain(order: Order) -> Obtained:
    """What ``images build`` has locked: what is loaded must not be asked anew on every day."""
    return obtain_installed(order, "modules", functools.partial(modules_image, order.root))


def entries(places: ImagePaths) -> list[Entry]:  # noqa: ARG001 - of every kind
    """None: all that there is to an image is its row."""
    return []


def leftovers(places: ImagePaths, needed: Needed) -> list[Leftover]:
    """Load lines that no row and no campaign names."""
    kept = {modules_folder(places.root, row) for row in needed.rows if row.kind == "modules"}
    return [
        Leftover(f"load lines {path}", 0, functools.partial(shutil.rmtree, path))
        for path in sorted((places.root.resolve() / "modules").glob("*-*"))
        if path.is_dir() and path not in kept and not needed.path(path)
    ]
