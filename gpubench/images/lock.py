"""``images.lock.toml`` in the current directory, read and written whole, and made again from a registry."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpubench.errors import DataError, MissingToolError, UsageError
from gpubench.files import locked, write_atomically
from gpubench.images.manifests import BUILD_ID_LABEL, BUILD_MANIFEST, SITE_LABEL, from_labels, read_manifest
from gpubench.model.images_lock import LOCK_FILE, ImagesLock, LockRow
from gpubench.model.site import Site
from gpubench.render.shell import command_line
from gpubench.resources.profiles import to_type

_log = logging.getLogger(__name__)


def read_lock() -> ImagesLock:
    """The rows of the current directory's file, none where there is no file; raises UsageError, DataError."""
    path = Path(LOCK_FILE)
    try:
        return ImagesLock.parse(path.read_text("utf-8"), str(path))
    except FileNotFoundError:
        return ImagesLock()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not TOML: its byte {error.start} is no UTF-8", then="save it as UTF-8") from None
    except OSError as error:
        raise MissingToolError(f"can't read {path}: {error.strerror}") from None


def add_rows(rows: Iterable[LockRow]) -> None:
    """Replace the rows with the same key; two processes at the same time don't lose each other's rows."""
    with locked(Path.cwd()):
        write_atomically(Path.cwd() / LOCK_FILE, read_lock().with_rows(rows).dump())


def locked_rows(site: Site, specs: Sequence[str], date: str) -> list[LockRow]:
    """The row of every spec, of all where none is named; raises UsageError for one that isn't locked."""
    lock = read_lock()
    names = list(specs) or sorted({row.spec for row in lock.image if (row.kind, row.site) == ("docker", site.name)})
    rows = {spec: lock.find(kind="docker", spec=spec, site=site.name, date=date) for spec in names}
    for spec, row in rows.items():
        if row is None:
            on = f" of {date}" if date else ""
            build = command_line(["gpubench", "images", "build", *to_type(site.name), "--ucx", spec])
            raise UsageError(
                f"images.lock.toml has no image {spec}{on} for site {site.name}", then=f"build it: {build}"
            )
    return [row for row in rows.values() if row]


def lock_registry(site: Site) -> list[LockRow]:
    """Read the manifests of the images in the site's registry, and write their rows; other rows stay unchanged.

    Raises:
        UsageError: the site names no registry.
        SchedulerError: the registry is down or refuses.
        DataError: none of its images is gpubench's for this site.
    """
    from gpubench.images.docker.registry import Registry  # noqa: PLC0415 - it loads docker

    if not site.image.registry:
        raise UsageError(f"site {site.name} names no registry", then="give it: --set image.registry=HOST/NAME")
    registry = Registry(site.image.registry)
    rows = []
    for tag in registry.tags():
        if not tag.startswith("ucx-py-"):
            continue
        try:
            image = registry.resolve(tag, site.image.architecture)
            if not image.labels.get(BUILD_ID_LABEL) or image.labels.get(SITE_LABEL) != site.name:
                continue
            text = registry.last_layer_file(image, BUILD_MANIFEST)
            document = read_manifest(text, f"{site.image.registry}:{tag}")
            row = from_labels(image.labels, document, registry=site.image.registry, tag=tag, digest=image.digest)
        except DataError as error:
            _log.warning(f"{tag} left out: {error}")
            continue
        rows.append(row)
    if not rows:
        raise DataError(
            f"{site.image.registry} holds no image for site {site.name}", then="gpubench images build makes one"
        )
    add_rows(rows)
    return rows
