"""From UCX specs to images that are there and sound."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import platformdirs

from gpubench.errors import DataError
from gpubench.images import folders
from gpubench.images.build_mutex import Progress
from gpubench.images.compatibility import choose
from gpubench.images.manifest import manifest, manifest_id
from gpubench.images.specs import resolve
from gpubench.images.stack import check_python
from gpubench.images.venv import BuiltVenv, build, image_id, there
from gpubench.model.image import Image


def images_root(configured: str = "") -> Path:
    """``paths.images`` of the profile with ``~`` and variables resolved; empty means the user's cache directory."""
    if configured:
        return Path(os.path.expandvars(configured)).expanduser()
    return Path(platformdirs.user_cache_dir("gpubench"))


def ensure(specs: Sequence[str], root: Path, progress: Progress) -> dict[str, tuple[Image, dict[str, Any]]]:
    """One image per spec with its manifest, built where missing or damaged; all on one stack.

    ``root`` is where images live (see ``images_root``); ``progress`` gets one line per step. Specs that mean the same
    version share the image.

    Raises:
        UsageError: an unknown or ambiguous version, a ``root`` that can't be written.
        PlanRefusedError: a branch, or versions that no one stack can run.
        MissingToolError: the index doesn't answer, the disk is full, no fitting Python.
        DataError: a wheel doesn't hold the UCX that its name says.
    """
    # All names are settled before anything is fetched: a typo in the last version must not cost a build.
    wheels = {spec: resolve(spec) for spec in specs}
    stack = choose(list(wheels.values()))
    distinct = {wheel.version: wheel for wheel in wheels.values()}
    built = dict(zip(distinct, build(stack, list(distinct.values()), root, progress), strict=True))
    return {spec: _image(spec, built[wheel.version]) for spec, wheel in wheels.items()}


def find(specs: Sequence[str], root: Path) -> dict[str, tuple[Image, dict[str, Any]] | None]:
    """As ``ensure``, but what is missing or damaged is None, and nothing is built."""
    wheels = {spec: resolve(spec) for spec in specs}
    stack = choose(list(wheels.values()))
    built = {wheel.version: there(stack, wheel, root) for wheel in wheels.values()}
    return {spec: _image(spec, one) if (one := built[wheel.version]) else None for spec, wheel in wheels.items()}


def verify(image: Image, *, deep: bool = False) -> None:
    """Refuse an image that isn't what was built. Cheap (sizes and times of its files); ``deep`` reads every byte.

    Raises:
        DataError: a file changed, is missing or was added; names the folder and what to do.
    """
    stack = folders.read(Path(image.python).parents[2])
    ucx = folders.read(Path(image.env["LD_LIBRARY_PATH"]).parents[2])
    for folder in (stack, ucx):
        folders.check(folder, deep=deep)
    check_python(stack)
    if image_id(stack, ucx) != image.id:
        raise DataError(f"image {image.ucx_spec} in {ucx.path} is not the planned one ({image.id})", then="plan anew")


def _image(spec: str, built: BuiltVenv) -> tuple[Image, dict[str, Any]]:
    document = manifest(built)
    image = Image(
        kind="venv",
        id=image_id(built.stack, built.ucx),
        ucx_spec=spec,
        ucx_version=built.wheel.version,
        binding=built.row.binding,
        python=str(built.python),
        env={
            "RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY": "true",
            "LD_LIBRARY_PATH": str(built.libraries),
        },
        manifest=manifest_id(document),
    )
    return image, document
