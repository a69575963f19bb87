"""How the node half's command runs inside the image: one module each, named in the one dict."""

from __future__ import annotations

from gpubench.runtimes import apptainer, charliecloud, conda, docker, enroot, modules, pod, pyxis, venv
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime

RUNTIMES: dict[str, Runtime] = {
    "apptainer": apptainer,
    "charliecloud": charliecloud,
    "conda": conda,
    "docker": docker,
    "enroot": enroot,
    "modules": modules,
    "pod": pod,
    "pyxis": pyxis,
    "venv": venv,
}

__all__ = ["RUNTIMES", "Expanded", "ImagePlace", "Runtime"]
