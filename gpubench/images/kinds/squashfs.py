"""Kind ``squashfs``: a container image imported into a file, named by the digest that it came from."""

from __future__ import annotations

import functools
from pathlib import Path

from gpubench.errors import DataError
from gpubench.images import manifests, squashfs
from gpubench.images.kinds.base import Entry, Found, ImagePaths, Leftover, Needed, Obtained, Order, folder_of
from gpubench.images.rows import docker_image
from gpubench.model.image import Image

ON_DEMAND = False


def obtain(order: Order) -> Obtained:
    """What ``images build`` has locked and ``images import`` has brought here; nothing is built or imported now."""
    folder = folder_of(order.site, order.root)
    return Obtained({spec: _find(order, folder, spec) for spec in order.specs})


def _find(order: Order, folder: Path, spec: str) -> Found | None:
    row = order.lock.find(kind="docker", spec=spec, site=order.site.name, date=order.date)
    if row is None:
        return None
    imported = squashfs.find(folder, row.digest)
    manifest = manifests.manifest_of(order.root, row) if imported else None
    if imported is None or manifest is None:
        return None
    squashfs.check(imported, deep=False)
    image = docker_image(row).model_copy(update={"kind": "squashfs", "reference": str(imported.path)})
    return image, manifest


def ready(image: Image) -> None:
    """Raise DataError where the file is missing or isn't what was imported."""
    path = Path(image.reference)
    imported = squashfs.at(path)
    if imported is None or imported.digest != image.id:
        raise DataError(
            f"{path} is missing, or was imported from another image", then="import it again: gpubench images import"
        )
    squashfs.check(imported, deep=False)


def entries(places: ImagePaths) -> list[Entry]:
    """The imported files."""
    return [
        Entry(
            kind="squashfs",
            spec=one.spec,
            ucx="",
            identity=one.digest,
            where=str(one.path),
            date=one.date,
            size=one.size,
        )
        for one in squashfs.imported(places.squashes)
    ]


def leftovers(places: ImagePaths, needed: Needed) -> list[Leftover]:
    """Files whose digest nobody names, and what killed imports left."""
    killed = [
        Leftover(str(path), squashfs.size_of(path), functools.partial(squashfs.discard, path))
        for path in squashfs.abandoned(places.squashes)
    ]
    return killed + [
        Leftover(str(one.path), one.size, one.remove)
        for one in squashfs.imported(places.squashes)
        if not needed.digest(one.digest)
    ]
