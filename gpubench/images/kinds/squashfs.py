"""Kind ``squashfs``: a container image imported into a file, named by the digest that it came from; and the import."""

import contextlib
import dataclasses
import json
import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.errors import (
    DataError,
    GpubenchError,
    InterruptedByUserError,
    MissingToolError,
    SchedulerError,
    UsageError,
)
from gpubench.files import write_atomically
from gpubench.images.kinds.base import Entry, Found, ImagePaths, ImageRequest, Obtained
from gpubench.images.lock import locked_rows
from gpubench.images.manifests import docker_image
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.render.importing import PROGRAMS, SIDECAR, render_import, squashfs_name
from gpubench.render.shell import command_line
from gpubench.resources.profiles import to_type
from gpubench.runtimes import RUNTIMES

_log = logging.getLogger(__name__)

SCRIPT = "import.sh"
_CAUSES: dict[int, type[GpubenchError]] = {
    error.exit_code: error for error in (DataError, MissingToolError, SchedulerError, InterruptedByUserError)
}
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


def import_images(site: Site, specs: Sequence[str], date: str, out: Path | None) -> None:
    """Write ``import.sh`` for the locked images; unless ``out`` only wants the script, run it as the profile says.

    Raises:
        UsageError: an image that isn't locked, or was never pushed.
        MissingToolError: no enroot or Apptainer where it runs, or the disk is full.
        SchedulerError: the registry refused or failed.
    """
    rows = locked_rows(site, specs, date)
    if not rows:
        registry = [] if site.image.registry else ["--set", "image.registry=HOST/NAME"]
        build = command_line(["gpubench", "images", "build", "--push", *to_type(site.name), *registry])
        raise UsageError(f"images.lock.toml has no image for site {site.name}", then=build)
    for row in rows:
        if not row.registry:
            raise UsageError(
                f"image {row.spec} of {row.date} is in the local engine only",
                then=f"push it: {command_line(['gpubench', 'images', 'push', row.spec, *to_type(row.site)])}",
            )
    folder = ImagePaths.of(site).squashfs
    own = RUNTIMES[site.runtime].PROGRAM
    program = site.imports.program or (own if own in PROGRAMS else "enroot")
    templates = resources.texts("templates", "importing/**/*.j2")
    script = render_import(rows, str(folder), templates, program=program, gpubench=__version__)
    path = (out or Path(site.paths.outputs) / "images" / site.name) / SCRIPT
    write_atomically(path, script)
    command = [*site.imports.launch, "bash", str(path.resolve())]
    if out:
        _log.info(f"{path} imports {counted(len(rows), 'image')} into {folder}")
        return
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise MissingToolError(
            f"can't start {command[0]}: {error.strerror}; the script is {path}",
            then=f"run it on a machine with {program}: bash {path}",
        ) from None
    if code:
        raise _CAUSES.get(code, SchedulerError)(
            f"{path} ended with exit code {code}; its last lines say why", then="run it again: finished files are kept"
        )
