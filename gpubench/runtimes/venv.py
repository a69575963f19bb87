"""Runtime ``venv``: the image's own Python, isolated from the caller's ``PYTHON*`` variables and user site-packages."""

from __future__ import annotations

from gpubench.model.image import Image


def command(image: Image, words: list[str]) -> list[str]:
    """``-I``: the supervisor itself must not import what a login shell put on ``PYTHONPATH``."""
    return [image.python, "-I", *words]
