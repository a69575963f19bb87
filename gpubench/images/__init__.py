"""Images: built software environments that hold one UCX version each."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpubench.images.kinds.base import images_root
    from gpubench.images.kinds.venvs import ensure, verify
    from gpubench.images.manifests import MANIFEST, differences, manifest_id

__all__ = ["MANIFEST", "differences", "ensure", "images_root", "manifest_id", "verify"]
_HOMES = {
    "MANIFEST": "manifests",
    "differences": "manifests",
    "ensure": "kinds.venvs",
    "images_root": "kinds.base",
    "manifest_id": "manifests",
    "verify": "kinds.venvs",
}


def __getattr__(name: str) -> Any:
    """What only some commands need is imported when it is asked for (PEP 562): a verdict needs no kind of images."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
