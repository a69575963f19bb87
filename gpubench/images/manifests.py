"""Manifests: what an image is made of, as one document; read and compared.

And rows of ``images.lock.toml``: from a row to the image that a plan names, and from an image's labels to its row.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from gpubench.errors import DataError
from gpubench.model.image import Image
from gpubench.model.images_lock import LockRow
from gpubench.node.spec.plain import parse_json

BUILD_MANIFEST = "/gpubench/manifest.json"
"""Where every container image says what it is."""
BUILD_ID_LABEL = "io.gpubench.build-id"
SITE_LABEL = "io.gpubench.site"


def reference(row: LockRow) -> str:
    """What the engine starts: by digest from the registry, or the local image by its id.

    Without the registry's scheme: how it is asked is the matter of each runtime's own configuration.
    """
    return f"{row.registry.rpartition('://')[2]}@{row.digest}" if row.registry else row.digest


def docker_image(row: LockRow) -> Image:
    return _image(row, reference(row), BUILD_MANIFEST)


def prefix_image(row: LockRow) -> Image:
    """The image of a ``conda`` row."""
    prefix = Path(row.python).parents[1]
    return _image(row, str(prefix), str(prefix / "gpubench" / "manifest.json"))


def modules_folder(root: Path, row: LockRow) -> Path:
    """Where the load lines and the manifest of a ``modules`` row lie; ``root`` is ``paths.images``."""
    return root.resolve() / "modules" / f"{row.site}-{row.build_id}"


def modules_image(root: Path, row: LockRow) -> Image:
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
    labels: Mapping[str, str], manifest: Mapping[str, Any], *, registry: str, tag: str, digest: str
) -> LockRow:
    """The row of a container image, whoever built it: from its labels and its manifest.

    ``registry`` has it; empty: the local engine.

    Raises:
        DataError: one of them lacks something.
    """
    try:
        ucx, binding = manifest["ucx"], manifest["binding"]
        return LockRow(
            kind="docker",
            spec=labels["io.gpubench.ucx-spec"],
            site=labels[SITE_LABEL],
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
            architecture=labels["io.gpubench.architecture"],
            base=manifest["base"]["name"],
            document=dict(manifest),
        )
    except (KeyError, TypeError, AttributeError, pydantic.ValidationError) as error:
        lacks = str(error) if isinstance(error, KeyError) else type(error).__name__
        raise DataError(
            f"the labels or the manifest of {tag} aren't what gpubench writes ({lacks})", then="build it again"
        ) from None


MANIFEST = "gpubench/manifest/1"


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Every value that differs, as (dotted path, in ``left``, in ``right``), sorted; None stands for a missing one."""
    left_leaves, right_leaves = _leaves(left), _leaves(right)
    paths = sorted(left_leaves.keys() | right_leaves.keys())
    return [
        (path, left_leaves.get(path), right_leaves.get(path))
        for path in paths
        if left_leaves.get(path) != right_leaves.get(path)
    ]


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {path: value}
    leaves: dict[str, Any] = {}
    for key, inner in value.items():
        leaves |= _leaves(inner, f"{path}.{key}" if path else str(key))
    return leaves


def read_manifest(text: bytes, source: str) -> dict[str, Any]:
    """The manifest in an image's ``/gpubench/manifest.json``.

    Raises:
        DataError: not a manifest; the image wasn't built by gpubench, or not to its end.
    """
    try:
        document = parse_json(text)
        if document["schema"] == MANIFEST:
            return dict(document)
    except (ValueError, KeyError, TypeError):
        pass
    raise DataError(f"{source} holds no {MANIFEST}", then="build the image with gpubench images build")
