"""From a row of ``images.lock.toml`` to the image that a plan names, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from gpubench.errors import DataError
from gpubench.model.image import Image
from gpubench.model.images_lock import LockRow

BUILD_MANIFEST = "/gpubench/manifest.json"
"""Where every container image says what it is."""
BUILD_ID_LABEL = "io.gpubench.build-id"
STAGE_LABEL = "io.gpubench.stage"
SITE_LABEL = "io.gpubench.site"


def reference(row: LockRow) -> str:
    """What the engine starts: by digest from the registry, or the local image by its id."""
    return f"{plain(row.registry)}@{row.digest}" if row.registry else row.digest


def plain(registry: str) -> str:
    """``[http://]HOST/REPOSITORY`` as runtimes take it: how a registry is asked is their own configuration's matter."""
    return registry.rpartition("://")[2]


def docker_image(row: LockRow) -> Image:
    """The image of a ``docker`` row."""
    return _image(row, reference(row), BUILD_MANIFEST)


def prefix_image(row: LockRow) -> Image:
    """The image of a ``conda`` row."""
    prefix = Path(row.python).parents[1]
    return _image(row, str(prefix), str(prefix / "gpubench" / "manifest.json"))


def modules_folder(root: Path, row: LockRow) -> Path:
    """Where the load lines and the manifest of a ``modules`` row lie; ``root`` is ``paths.images``."""
    return root.resolve() / "modules" / f"{row.site}-{row.build_id}"


def modules_image(root: Path, row: LockRow) -> Image:
    """The image of a ``modules`` row."""
    folder = modules_folder(root, row)
    return _image(row, str(folder / "load.sh"), str(folder / "manifest.json"))


def _image(row: LockRow, name: str, manifest: str) -> Image:
    return Image(
        kind=row.kind,
        id=row.digest,
        ucx_spec=row.spec,
        ucx_version=row.ucx_version,
        binding=row.binding,
        python=row.python,
        env=row.env,
        manifest=row.manifest,
        reference=name,
        build_id=row.build_id,
        build_manifest=manifest,
    )


def from_labels(
    labels: Mapping[str, str],
    manifest: Mapping[str, Any],
    manifest_id: str,
    *,
    site: str,
    registry: str,
    tag: str,
    digest: str,
) -> LockRow:
    """The row of an image that somebody else built: from its labels and its manifest.

    Raises:
        DataError: one of them lacks something.
    """
    try:
        ucx, binding = manifest["ucx"], manifest["binding"]
        return LockRow(
            kind="docker",
            spec=labels["io.gpubench.ucx-spec"],
            site=site,
            registry=registry,
            date=tag.rpartition("-")[2],
            tag=tag,
            digest=digest,
            build_id=manifest["build_id"],
            ucx_version=ucx["version"],
            ucx_commit=ucx.get("commit") or "",
            binding=binding["name"],
            stack=labels["io.gpubench.stack"],
            python=labels["io.gpubench.python"],
            env=manifest["env"],
            manifest=manifest_id,
            architecture=labels["io.gpubench.architecture"],
            base=manifest["base"]["name"],
        )
    except (KeyError, TypeError, AttributeError, pydantic.ValidationError) as error:
        lacks = str(error) if isinstance(error, KeyError) else type(error).__name__
        raise DataError(
            f"the labels or the manifest of {tag} aren't what gpubench writes ({lacks})", then="build it anew"
        ) from None
