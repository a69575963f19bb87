"""Runtime ``venv``: the image's own Python, isolated from the caller's ``PYTHON*`` variables and user site-packages."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import ImagePlace

KIND = "venv"
PROGRAM = ""
TEMPLATE = ""
LEAVES = False
LEFT = ""
PARTS_AT = ""


def prefix(place: ImagePlace) -> list[str]:  # noqa: ARG001 - no container is started
    """Nothing."""
    return []


def make_ready(image: Image) -> list[str]:  # noqa: ARG001 - the protocol's
    """Nothing: it is started as it is."""
    return []


def command(image: Image, words: Sequence[str]) -> list[str]:
    """``-I``: the supervisor itself must not import what a login shell put on ``PYTHONPATH``."""
    return [image.python, "-I", *words]
