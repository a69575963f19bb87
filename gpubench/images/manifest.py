"""Manifests: what an image is made of, as one plain document, and what differs between two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpubench.images.venv import BuiltVenv
from gpubench.spec.plain import content_id

MANIFEST = "gpubench/manifest/1"


def manifest(built: BuiltVenv) -> dict[str, Any]:
    """The manifest of an image; two images on one stack differ only below ``ucx``.

    ``ucx.libucp`` is the file that must show up in the memory map of every process of a run; ``ucx.release`` is what
    the library reports, ``ucx.version`` the wheel's full version, ``content`` the hash of the files.
    """
    stack, ucx = built.stack.facts, built.ucx.facts
    row = built.row
    return {
        "schema": MANIFEST,
        "kind": "venv",
        "ucx": {
            "spec": built.wheel.release,
            "version": ucx["version"],
            "release": ucx["release"],
            "revision": ucx["revision"],
            "configure": ucx["configure"],
            "content": built.ucx.content,
            "wheel": ucx["wheel"],
            "libucp": str((built.libraries / "libucp.so.0").resolve()),
        },
        "stack": {
            "name": row.name,
            "python": stack["python"],
            "packages": stack["packages"],
            "lock": stack["lock"],
            "content": built.stack.content,
        },
        "binding": {"name": row.binding, "version": row.binding_version, "scheme": row.scheme},
    }


def manifest_id(document: Mapping[str, Any]) -> str:
    """The hash under which a manifest stands in ``manifests/``."""
    return content_id(dict(document))


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Every value that differs, as (dotted path, in ``one``, in ``other``), sorted; None stands for a missing one."""
    left, right = _leaves(one), _leaves(other)
    paths = sorted(left.keys() | right.keys())
    return [(path, left.get(path), right.get(path)) for path in paths if left.get(path) != right.get(path)]


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {path: value}
    leaves: dict[str, Any] = {}
    for key, inner in value.items():
        leaves |= _leaves(inner, f"{path}.{key}" if path else str(key))
    return leaves
