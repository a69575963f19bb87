"""Kind ``venv``: a folder per stack and per UCX version, built where it is missing."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from gpubench.errors import DataError
from gpubench.images import folders
from gpubench.images.catalog import ensure, find, verify
from gpubench.images.kinds.image_paths import ImagePaths
from gpubench.images.kinds.listing import Entry
from gpubench.images.kinds.prunable import Leftover, Needed
from gpubench.images.requests import Obtained, Order
from gpubench.model.image import Image

ON_DEMAND = True


def obtain(order: Order) -> Obtained:
    """All on one stack, built where missing or damaged: no decision of anybody's. Raises as ``catalog.ensure``."""
    if order.look_only:
        return Obtained(dict(find(order.specs, order.root)))
    return Obtained(dict(ensure(order.specs, order.root, order.progress)))


def ready(image: Image) -> None:
    """Raise DataError where a file changed since the build."""
    verify(image)


def entries(places: ImagePaths) -> list[Entry]:
    """The stacks and the UCX versions, which any of the stacks can run."""
    found = []
    for path in sorted((places.root / "venv").glob("*-*/image.json")):
        try:
            folder = folders.read(path.parent)
        except DataError:  # whoever wants to use it is told; a list must not end at it
            continue
        version = str(folder.facts.get("version", ""))
        found.append(
            Entry(
                kind="venv",
                spec=version or "(stack)",
                ucx=version,
                identity=folder.content,
                where=str(folder.path),
                stack="" if version else folder.path.name.partition("-py")[0],
                size=folder.size,
            )
        )
    return found


def leftovers(places: ImagePaths, needed: Needed) -> list[Leftover]:
    """Folders that no campaign runs on."""
    return [
        Leftover(one.where, one.size, functools.partial(shutil.rmtree, one.where))
        for one in entries(places)
        if not needed.path(Path(one.where))
    ]
