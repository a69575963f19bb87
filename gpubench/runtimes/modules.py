"""Runtime ``modules``: a shell loads the site's modules and becomes their Python."""

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime

LOAD = '. "$0" >&2 && exec "$@"'
"""``bash -c LOAD FILE COMMAND...`` runs the command with what the file loads.

What a modulefile prints (``execute`` in Lmod's, ``puts stdout`` in Tcl) doesn't mix with what the command prints.
"""


class Modules(Runtime):
    KIND = "modules"

    def prefix(self, place: ImagePlace) -> list[str]:  # noqa: ARG002 - no container is started
        """The shell; it doesn't stay: a signal reaches Python."""
        return ["bash", "-c", Expanded(LOAD)]

    def command(self, image: Image, arguments: Sequence[str]) -> list[str]:
        """The file of load lines, and the Python that it was found to bring."""
        return [image.reference, image.python, "-I", *arguments]
