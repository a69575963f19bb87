"""Runtime ``conda``: the Python of a prefix that every node sees, isolated from the caller's ``PYTHON*`` variables."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import ImagePlace

KIND = "conda"
PROGRAM = ""
TEMPLATE = ""
LEAVES = False
LEFT = ""
PARTS_AT = ""


def prefix(place: ImagePlace) -> list[str]:  # noqa: ARG001 - no container is started
    """Nothing: no activation, whose hooks set what no variant names."""
    return []


def make_ready(image: Image) -> list[str]:  # noqa: ARG001 - the protocol's
    """Nothing: it is started as it is."""
    return []


def command(image: Image, words: Sequence[str]) -> list[str]:
    """The prefix's own Python."""
    return [image.python, "-I", *words]
