"""What kinds share whose images lie on a file system that every node sees: conda prefixes, modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpubench.errors import DataError
from gpubench.images import manifests
from gpubench.images.manifests import manifest_id
from gpubench.images.requests import Found, Obtained, Order
from gpubench.model.image import Image
from gpubench.model.images_lock import LockRow


def obtain(order: Order, kind: str, image_of: Callable[[LockRow], Image]) -> Obtained:
    """What ``images build`` has locked; nothing is built now."""
    rows = {spec: order.lock.find(kind=kind, spec=spec, site=order.site.name, date=order.date) for spec in order.specs}
    return Obtained({spec: _found(order.root, row, image_of(row)) if row else None for spec, row in rows.items()})


def ready(image: Image) -> None:
    """Raise DataError where the image is gone, or isn't any more what it was when it was built."""
    again = f"run gpubench images build {image.ucx_spec}"
    path = Path(image.build_manifest)
    try:
        document = manifests.read_manifest(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"can't read {path} of image {image.ucx_spec}: {error.strerror}", then=again) from None
    if manifest_id(document) != image.id:
        raise DataError(f"{path} isn't the one of image {image.ucx_spec} ({image.id})", then=f"{again}, and plan anew")


def _found(root: Path, row: LockRow, image: Image) -> Found | None:
    document = manifests.find(root, row.manifest)
    if document is None:
        try:
            text = Path(image.build_manifest).read_bytes()
        except OSError:
            return None
        document = manifests.read_manifest(text, image.build_manifest)
        if manifest_id(document) != row.manifest:
            return None
        manifests.keep(root, document)
    return image, document
