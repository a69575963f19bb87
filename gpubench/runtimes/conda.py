"""Runtime ``conda``: the Python of a prefix that every node sees, isolated from the caller's ``PYTHON*`` variables."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import Place

KIND = "conda"
PROGRAM = ""
TEMPLATE = ""
LEAVES = False
LEFT = ""
PARTS_AT = ""


def prefix(place: Place) -> list[str]:  # noqa: ARG001 - no container is started
    """Nothing: no activation, whose hooks set what no variant names."""
    return []


def make_ready(image: Image) -> list[str]:  # noqa: ARG001 - the protocol's
    """Nothing: it is started as it is."""
    return []


def command(image: Image, words: Sequence[str]) -> list[str]:
    """The prefix's own Python."""
    return [image.python, "-I", *words]
