"""What every kind of images takes and gives: orders, paths, rows of a list."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import platformdirs

from gpubench.errors import DataError
from gpubench.images import manifests
from gpubench.images.folders import Progress
from gpubench.images.manifests import reference
from gpubench.model.image import Image, manifest_id
from gpubench.model.images_lock import ImagesLock, LockRow
from gpubench.model.site import Site

Found = tuple[Image, Mapping[str, Any]]
"""An image and its manifest."""
Obtained = dict[str, Found | None]
"""Images by spec, None where there is none yet."""


def images_root(configured: str = "") -> Path:
    """``paths.images`` of the profile with ``~`` and variables resolved; empty means the user's cache directory."""
    if configured:
        return Path(os.path.expandvars(configured)).expanduser()
    return Path(platformdirs.user_cache_dir("gpubench"))


@dataclasses.dataclass(frozen=True, order=True)
class ImagePaths:
    """``root`` is ``paths.images``; ``squashfs`` the folder of imported squashfs files, which may lie elsewhere."""

    root: Path
    squashfs: Path

    @staticmethod
    def of(site: Site) -> "ImagePaths":
        root, configured = images_root(site.paths.images), site.imports.folder
        squashfs = Path(os.path.expandvars(configured)).expanduser() if configured else root / "squashfs"
        return ImagePaths(root, squashfs.absolute())


@dataclasses.dataclass(frozen=True)
class ImageRequest:
    """One image per UCX spec.

    Args:
        specs: as typed.
        site: that the images must fit.
        lock: what has been built.
        date: ``YYYYMMDD`` of the wanted build; empty: the newest.
        base: that the user named for new builds; empty: none, whatever is locked will do.
        build: whether what is missing may be built here and now.
        look_only: whether nothing may be built at all, not even what else is built on demand.
        progress: gets one line per step.
    """

    specs: Sequence[str]
    site: Site
    lock: ImagesLock
    date: str = ""
    base: str = ""
    build: bool = True
    look_only: bool = False
    progress: Progress = print

    @property
    def paths(self) -> ImagePaths:
        """Where images and manifests lie on this machine."""
        return ImagePaths.of(self.site)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One image, or one of the folders that images of a kind are put together from. ``size`` in bytes, 0 unknown."""

    kind: str
    spec: str
    ucx: str
    identity: str
    where: str
    site: str = ""
    date: str = ""
    stack: str = ""
    size: int = 0


def of_lock(rows: Sequence[LockRow]) -> list[Entry]:
    return [
        Entry(
            kind=row.kind,
            spec=row.spec,
            ucx=row.ucx_version if not row.ucx_commit else f"{row.ucx_version} {row.ucx_commit[:10]}",
            identity=row.digest,
            where=_where(row),
            site=row.site,
            date=row.date,
            stack=row.stack,
        )
        for row in rows
    ]


def _where(row: LockRow) -> str:
    if row.kind != "docker":
        return row.python
    return reference(row).partition("@")[0] if row.registry else "local engine"


def no_entries(paths: ImagePaths) -> list[Entry]:  # noqa: ARG001 - of every kind
    """Of a kind whose images are all rows of the lock: what no row names belongs to nobody."""
    return []


def obtain_locked(request: ImageRequest, kind: str, image_of: Callable[[LockRow], Image]) -> Obtained:
    """What ``images build`` has locked; nothing is built now."""
    rows = {
        spec: request.lock.find(kind=kind, spec=spec, site=request.site.name, date=request.date)
        for spec in request.specs
    }
    return {spec: (image_of(row), row.document) if row else None for spec, row in rows.items()}


def installed_ready(image: Image) -> None:
    """Raise DataError where the image is gone, or isn't any more what it was when it was built."""
    again = f"run gpubench images build {image.ucx_spec}"
    path = Path(image.build_manifest)
    try:
        document = manifests.read_manifest(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"can't read {path} of image {image.ucx_spec}: {error.strerror}", then=again) from None
    if manifest_id(document) != image.id:
        raise DataError(f"{path} isn't the one of image {image.ucx_spec} ({image.id})", then=f"{again}, and plan again")
