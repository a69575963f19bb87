"""How the node half's command runs inside the image: one module each, named in the one dict."""

from __future__ import annotations

from gpubench.runtimes import docker, venv
from gpubench.runtimes.base import Expanded, Place, Runtime

RUNTIMES: dict[str, Runtime] = {
    "docker": docker,
    "venv": venv,
}

__all__ = ["RUNTIMES", "Expanded", "Place", "Runtime"]
