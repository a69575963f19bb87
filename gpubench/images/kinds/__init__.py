"""Kinds of images: how each comes to be on this machine. One module each, named in the one dict."""

from typing import Protocol

from gpubench.images.kinds import conda, containers, modules, squashfs, venvs
from gpubench.images.kinds.base import Entry, ImagePaths, ImageRequest, Obtained
from gpubench.model.image import Image


class Kind(Protocol):
    ON_DEMAND: bool
    """Whether a campaign builds them when it needs them, so that nobody has to ask for them by name."""

    def obtain(self, request: ImageRequest) -> Obtained:
        """One image per spec, built where that is asked for; raises as its module says."""

    def entries(self, paths: ImagePaths) -> list[Entry]:
        """What lies there that ``images.lock.toml`` doesn't name."""

    def ready(self, image: Image) -> None:
        """Whether a run can start it on this machine now; raises DataError or MissingToolError."""


KINDS: dict[str, Kind] = {
    "conda": conda,
    "docker": containers,
    "modules": modules,
    "squashfs": squashfs,
    "venv": venvs,
}
