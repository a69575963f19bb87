"""Manifests of images in a registry, asked over its API: a lock file that came by git brings none along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.images import manifests
from gpubench.images.manifest import manifest_id
from gpubench.images.rows import BUILD_MANIFEST, reference
from gpubench.model.images_lock import LockRow


def manifest_of(root: Path, row: LockRow) -> dict[str, Any] | None:
    """The manifest of a ``docker`` row: kept below ``root``, else fetched (some kB) and kept there.

    None: it isn't kept here, and the image was never pushed.

    Raises:
        SchedulerError: the registry is down, refuses, or hasn't got the image any more.
        DataError: what lies there isn't the image that was locked.
        MissingToolError: it can't be kept.
    """
    document = manifests.find(root, row.manifest)
    if document is not None or not row.registry:
        return document
    # Late: the HTTP library takes its time, and most manifests are here already.
    from gpubench.images.docker.registry import Registry  # noqa: PLC0415

    registry = Registry(row.registry)
    found = registry.resolve(row.digest, architecture=row.architecture)
    document = manifests.read_manifest(registry.last_layer_file(found, BUILD_MANIFEST), found.reference)
    require_locked(row, document)
    manifests.keep(root, document)
    return document


def require_locked(row: LockRow, document: dict[str, Any]) -> None:
    """Raise DataError unless ``document``, read out of the image, is the manifest that the row names."""
    if manifest_id(document) != row.manifest:
        raise DataError(
            f"image {reference(row)} isn't the one of images.lock.toml: its manifest differs",
            then="run gpubench images lock",
        )
