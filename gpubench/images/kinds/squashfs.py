"""Kind ``squashfs``: a container image imported into a file, named by the digest that it came from."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import secrets
import shutil
import time
from pathlib import Path

from gpubench.errors import DataError
from gpubench.images import manifests
from gpubench.images.kinds.base import Entry, Found, ImagePaths, ImageRequest, Leftover, Needed, Obtained, folder_of
from gpubench.images.manifests import docker_image
from gpubench.model.image import Image
from gpubench.render.importing import SIDECAR, link_name, squashfs_name

ABANDONED_S = 3600.0
"""An importer touches its mark every few seconds; one that has been silent for an hour is dead, whatever the clocks."""
_AGAIN = "remove its directory and import it again: gpubench images import"

ON_DEMAND = False


@dataclasses.dataclass(frozen=True)
class ImportedSquashfs:
    """A container image as a squashfs file, and what its sidecar says.

    Args:
        path: of the file.
        digest: ``sha256:…`` of the image in the registry.
        spec: UCX spec as typed; ``date`` and ``build_id`` likewise from the image that was asked for.
        size: of the file, bytes.
        sha256: of the file, hex.
    """

    path: Path
    digest: str
    spec: str
    date: str
    build_id: str
    architecture: str
    size: int
    sha256: str

    def remove(self) -> None:
        """Remove the file, its sidecar and the link to it; what runs from it keeps its bytes on a local file system."""
        home = self.path.parent
        link = home.parent / link_name(self.spec, self.date)
        with contextlib.suppress(OSError):
            if link.readlink() == Path(home.name) / self.path.name:
                link.unlink()
        # First out of sight as a whole: a file without its sidecar must never be seen.
        grave = home.with_name(f".{home.name}.{secrets.token_hex(4)}.damaged")
        home.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)


def find_import(folder: Path, digest: str) -> ImportedSquashfs | None:
    """The file imported from ``digest``; None if there is none.

    Raises:
        DataError: its sidecar can't be read, or is another image's.
    """
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
        found = ImportedSquashfs(
            path=path,
            digest=plain["digest"],
            spec=plain["ucx_spec"],
            date=plain["date"],
            build_id=plain["build_id"],
            architecture=plain["architecture"],
            size=int(plain["size"]),
            sha256=plain["squashfs_sha256"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"the sidecar of {path} is missing or can't be read", then=_AGAIN) from None
    if plain.get("schema") != SIDECAR or path.parent.name != found.digest.replace(":", "-"):
        raise DataError(f"the sidecar of {path} isn't its own", then=_AGAIN)
    return found


def check(one: ImportedSquashfs, *, deep: bool) -> None:
    """Compare the file with its sidecar: its size, and if ``deep`` every byte.

    Raises:
        DataError: it is missing or was changed since it was imported.
    """
    try:
        size = one.path.stat().st_size
        if size != one.size:
            raise DataError(f"{one.path} has {size} bytes, and {one.size} were imported", then=_AGAIN)
        if deep:
            with one.path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != one.sha256:
                raise DataError(f"{one.path} was changed since it was imported: its sha256 is {found}", then=_AGAIN)
    except OSError as error:
        raise DataError(f"can't read {one.path}: {error.strerror or error}", then=_AGAIN) from None


def imported(folder: Path) -> list[ImportedSquashfs]:
    """Every imported file below ``folder``, by spec and date; what is damaged is left out."""
    found = []
    for path in folder.glob("sha256-*/image.sqsh"):
        with contextlib.suppress(DataError):
            found += [one for one in [at(path)] if one]
    return sorted(found, key=lambda one: (one.spec, one.date, one.digest))


def abandoned(folder: Path) -> list[Path]:
    """Temporary files and directories below ``folder`` whose importer is dead, sorted."""
    return [path for path in sorted(folder.glob(".sha256-*")) if time.time() - _last_sign(path) > ABANDONED_S]


def _last_sign(path: Path) -> float:
    """When it, what it holds, or the mark of who makes it was last written, in seconds of the epoch."""
    stamps = [0.0]
    for one in (path, *path.glob("*"), path.with_suffix(".beat")):
        with contextlib.suppress(OSError):
            stamps.append(one.stat().st_mtime)
    return max(stamps)


def size_of(path: Path) -> int:
    """Bytes of a file, or of the files in a directory."""
    found = 0
    for one in (path, *path.rglob("*")):
        with contextlib.suppress(OSError):
            found += one.stat().st_size if one.is_file() else 0
    return found


def discard(path: Path) -> None:
    """Remove a file or a directory; somebody else may do so at the same time."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def obtain(request: ImageRequest) -> Obtained:
    """What ``images build`` has locked and ``images import`` has brought here; nothing is built or imported now."""
    folder = folder_of(request.site, request.root)
    return Obtained({spec: _find(request, folder, spec) for spec in request.specs})


def _find(request: ImageRequest, folder: Path, spec: str) -> Found | None:
    row = request.lock.find(kind="docker", spec=spec, site=request.site.name, date=request.date)
    if row is None:
        return None
    imported = find_import(folder, row.digest)
    manifest = manifests.manifest_of(request.root, row) if imported else None
    if imported is None or manifest is None:
        return None
    check(imported, deep=False)
    image = docker_image(row).model_copy(update={"kind": "squashfs", "reference": str(imported.path)})
    return image, manifest


def ready(image: Image) -> None:
    """Raise DataError where the file is missing or isn't what was imported."""
    path = Path(image.reference)
    imported = at(path)
    if imported is None or imported.digest != image.id:
        raise DataError(
            f"{path} is missing, or was imported from another image", then="import it again: gpubench images import"
        )
    check(imported, deep=False)


def entries(paths: ImagePaths) -> list[Entry]:
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
        for one in imported(paths.squashfs)
    ]


def leftovers(paths: ImagePaths, needed: Needed) -> list[Leftover]:
    """Files whose digest nobody names, and what killed imports left."""
    killed = [
        Leftover(str(path), size_of(path), functools.partial(discard, path)) for path in abandoned(paths.squashfs)
    ]
    return killed + [
        Leftover(str(one.path), one.size, one.remove)
        for one in imported(paths.squashfs)
        if not needed.digest(one.digest)
    ]
