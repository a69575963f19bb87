"""Runtime ``pod``: a container of a pod, which the cluster pulls and starts; the object file names the image."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import ImagePlace

KIND = "docker"
PROGRAM = ""
TEMPLATE = ""
LEAVES = False
LEFT = ""
PARTS_AT = ""


def prefix(place: ImagePlace) -> list[str]:  # noqa: ARG001 - nothing is started by a command line
    """Nothing."""
    return []


def make_ready(image: Image) -> list[str]:  # noqa: ARG001 - the protocol's
    """Nothing: it is started as it is."""
    return []


def command(image: Image, words: Sequence[str]) -> list[str]:
    """The image's own Python, isolated from what its ENV may say to it."""
    return [image.python, "-I", *words]
