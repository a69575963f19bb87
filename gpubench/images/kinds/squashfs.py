"""Kind ``squashfs``: a container image that was imported into a file, named by the digest that it came from."""

import contextlib
import dataclasses
import json
from pathlib import Path

from gpubench.errors import DataError
from gpubench.images.kinds.base import Entry, Found, ImagePaths, ImageRequest, Obtained
from gpubench.images.manifests import docker_image
from gpubench.model.image import Image
from gpubench.render.importing import SIDECAR, squashfs_name

_AGAIN = "remove its directory and import it again: gpubench images import"

ON_DEMAND = False


@dataclasses.dataclass(frozen=True)
class ImportedSquashfs:
    """A container image as a squashfs file, and what its sidecar says.

    Args:
        path: of the file.
        digest: ``sha256:…`` of the image in the registry.
        spec: UCX spec as typed; ``date`` likewise from the image that was asked for.
        size: of the file, bytes.
    """

    path: Path
    digest: str
    spec: str
    date: str
    size: int


def find_import(folder: Path, digest: str) -> ImportedSquashfs | None:
    """The file imported from ``digest``; as ``at``."""
    return at(folder / squashfs_name(digest))


def at(path: Path) -> ImportedSquashfs | None:
    """The imported file ``path``; None if there is none.

    Raises:
        DataError: its sidecar can't be read, or is another image's.
    """
    if not path.parent.is_dir():
        return None
    try:
        plain = json.loads(path.with_name(f"{path.name}.json").read_text("utf-8"))
        image = ImportedSquashfs(
            path=path, digest=plain["digest"], spec=plain["ucx_spec"], date=plain["date"], size=int(plain["size"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"the sidecar of {path} is missing or can't be read", then=_AGAIN) from None
    if plain.get("schema") != SIDECAR or path.parent.name != image.digest.replace(":", "-"):
        raise DataError(f"the sidecar of {path} isn't its own", then=_AGAIN)
    return image


def check(image: ImportedSquashfs) -> None:
    """Raise DataError where the file is missing, or hasn't the size that was imported."""
    try:
        size = image.path.stat().st_size
    except OSError as error:
        raise DataError(f"can't read {image.path}: {error.strerror or error}", then=_AGAIN) from None
    if size != image.size:
        raise DataError(f"{image.path} has {size} bytes, and {image.size} were imported", then=_AGAIN)


def imported(folder: Path) -> list[ImportedSquashfs]:
    """Every imported file below ``folder``, by spec and date; what is damaged is left out."""
    images = []
    for path in folder.glob("sha256-*/image.sqsh"):
        with contextlib.suppress(DataError):
            images += [image for image in [at(path)] if image]
    return sorted(images, key=lambda image: (image.spec, image.date, image.digest))


def obtain(request: ImageRequest) -> Obtained:
    """What ``images build`` has locked and ``images import`` has brought here; nothing is built or imported now."""
    return {spec: _find(request, spec) for spec in request.specs}


def _find(request: ImageRequest, spec: str) -> Found | None:
    row = request.lock.find(kind="docker", spec=spec, site=request.site.name, date=request.date)
    if row is None:
        return None
    imported = find_import(request.paths.squashfs, row.digest)
    if imported is None:
        return None
    check(imported)
    image = docker_image(row).model_copy(update={"kind": "squashfs", "reference": str(imported.path)})
    return image, row.document


def ready(image: Image) -> None:
    """Raise DataError where the file is missing or isn't what was imported."""
    path = Path(image.reference)
    imported = at(path)
    if imported is None or imported.digest != image.id:
        raise DataError(
            f"{path} is missing, or was imported from another image", then="import it again: gpubench images import"
        )
    check(imported)


def entries(paths: ImagePaths) -> list[Entry]:
    return [
        Entry(
            kind="squashfs",
            spec=image.spec,
            ucx="",
            identity=image.digest,
            where=str(image.path),
            date=image.date,
            size=image.size,
        )
        for image in imported(paths.squashfs)
    ]
