"""What is known about an image before it is built: ``build.json``, which ``describe.py`` puts into the manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpubench.model.recipe import Recipe

BINDING_ENV = {
    "RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY": "true",
}
"""What every image sets in every process, wherever its UCX lies."""


def process_env(libraries: str) -> dict[str, str]:
    """What an image whose UCX lies in the folder ``libraries`` sets in every process; the run spec carries it."""
    return {"LD_LIBRARY_PATH": libraries, **BINDING_ENV}


def facts(recipe: Recipe, *, kind: str, build_id: str, lock_hash: str, env: Mapping[str, str]) -> bytes:
    """``build.json`` of a recipe's image."""
    return dump(
        {
            "kind": kind,
            "build_id": build_id,
            "base": {"name": recipe.base, "digest": recipe.pinned, "cuda": recipe.cuda},
            "env": dict(env),
            "ucx": {
                "spec": recipe.spec,
                "source": recipe.source,
                "version": recipe.ucx_version,
                "release": recipe.ucx_release,
                "commit": recipe.ucx_commit,
            },
            "stack": {"name": recipe.stack, "lock": lock_hash},
            "binding": {"name": recipe.binding, "version": recipe.binding_version, "scheme": recipe.scheme},
        }
    )


def dump(plain: Mapping[str, Any]) -> bytes:
    """The bytes of ``build.json``; the same facts give the same bytes."""
    return (json.dumps(plain, indent=1, sort_keys=True) + "\n").encode()
