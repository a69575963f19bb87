"""Manifests of images that lie elsewhere (an engine, a registry), kept by their hash below ``paths.images``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.files import write_atomically
from gpubench.images.manifest import MANIFEST, manifest_id


def read_manifest(text: bytes, source: str) -> dict[str, Any]:
    """The manifest in an image's ``/gpubench/manifest.json``.

    Raises:
        DataError: not a manifest; the image wasn't built by gpubench, or not to its end.
    """
    try:
        document = json.loads(text)
        if document["schema"] == MANIFEST:
            return dict(document)
    except (ValueError, KeyError, TypeError):
        pass
    raise DataError(f"{source} holds no {MANIFEST}", then="build the image with gpubench images build")


def keep(root: Path, document: Mapping[str, Any]) -> str:
    """Write the manifest below ``root`` unless it is there; returns its hash.

    Raises:
        MissingToolError: it can't be written.
    """
    name = manifest_id(document)
    path = _path(root, name)
    if find(root, name) is None:
        write_atomically(path, json.dumps(document, indent=1, sort_keys=True) + "\n")
    return name


def find(root: Path, name: str) -> dict[str, Any] | None:
    """The manifest of that hash; None where it isn't kept here or isn't what its name says."""
    try:
        document = json.loads(_path(root, name).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and manifest_id(document) == name else None


def _path(root: Path, name: str) -> Path:
    return root / "manifests" / f"{name}.json"
