"""Runtime ``modules``: a shell loads the site's modules and becomes their Python."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import Expanded, ImagePlace

KIND = "modules"
PROGRAM = ""
TEMPLATE = ""
LEAVES = False
LEFT = ""
PARTS_AT = ""
LOAD = '. "$0" && exec "$@"'
"""``bash -c LOAD FILE COMMAND...`` runs the command with what the file loads."""


def prefix(place: ImagePlace) -> list[str]:  # noqa: ARG001 - no container is started
    """The shell; it doesn't stay: a signal reaches Python."""
    return ["bash", "-c", Expanded(LOAD)]


def make_ready(image: Image) -> list[str]:  # noqa: ARG001 - the protocol's
    """Nothing: it is started as it is."""
    return []


def command(image: Image, words: Sequence[str]) -> list[str]:
    """The file of load lines, and the Python that it was found to bring."""
    return [image.reference, image.python, "-I", *words]
