"""What a campaign wants of its images, and what it gets; the same for every kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.images.build_mutex import Progress
from gpubench.model.image import Image
from gpubench.model.images_lock import ImagesLock, LockRow
from gpubench.model.site import Site

Found = tuple[Image, Mapping[str, Any]]
"""An image and its manifest."""


@dataclasses.dataclass(frozen=True)
class Order:
    """One image per UCX spec.

    Args:
        specs: as typed.
        site: that the images must fit.
        root: where images and manifests lie on this machine, see ``images_root``.
        lock: what has been built.
        date: ``YYYYMMDD`` of the wanted build; empty: the newest.
        base: that the user named for new builds; empty: none, whatever is locked will do.
        build: whether what is missing may be built here and now.
        look_only: whether nothing may be built at all, not even what else is built on demand.
        progress: gets one line per step.
    """

    specs: Sequence[str]
    site: Site
    root: Path
    lock: ImagesLock
    date: str = ""
    base: str = ""
    build: bool = True
    look_only: bool = False
    progress: Progress = print


@dataclasses.dataclass(frozen=True)
class Obtained:
    """``images`` by spec, None where there is none yet; ``rows`` are new for the lock."""

    images: dict[str, Found | None]
    rows: tuple[LockRow, ...] = ()
