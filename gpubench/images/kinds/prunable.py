"""What a kind of images has left on this machine that nobody names any more."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from gpubench.model.image import Image
from gpubench.model.images_lock import LockRow


@dataclasses.dataclass(frozen=True)
class Needed:
    """Everything that somebody names: rows of the lock, images of campaigns."""

    rows: tuple[LockRow, ...]
    images: tuple[Image, ...]

    def digest(self, digest: str) -> bool:
        """Whether a row or a campaign's image has this digest."""
        return digest in {row.digest for row in self.rows} | {image.id for image in self.images}

    def path(self, folder: Path) -> bool:
        """Whether a campaign's image lies in this folder."""
        inside = f"{folder}/"
        return any(
            word.startswith(inside)
            for image in self.images
            for word in (image.python, image.reference, *image.env.values())
        )


@dataclasses.dataclass(frozen=True)
class Leftover:
    """Something to remove; ``size`` in bytes, 0 where that is unknown."""

    what: str
    size: int
    remove: Callable[[], object]
