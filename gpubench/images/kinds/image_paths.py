"""Where images of a site lie on this machine."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import platformdirs

from gpubench.model.site import Site


@dataclasses.dataclass(frozen=True, order=True)
class ImagePaths:
    """``root`` is ``paths.images``; ``squashes`` the folder of imported squashfs files, which may lie elsewhere."""

    root: Path
    squashes: Path

    @staticmethod
    def of(site: Site) -> ImagePaths:
        """As the profile says it."""
        root = images_root(site.paths.images)
        return ImagePaths(root, folder_of(site, root))


def folder_of(site: Site, root: Path) -> Path:
    """Where the profile has squashfs files imported to; ``root`` is ``paths.images``."""
    configured = site.imports.folder
    folder = Path(os.path.expandvars(configured)).expanduser() if configured else root / "squashfs"
    return folder.absolute()


def images_root(configured: str = "") -> Path:
    """``paths.images`` of the profile with ``~`` and variables resolved; empty means the user's cache directory."""
    if configured:
        return Path(os.path.expandvars(configured)).expanduser()
    return Path(platformdirs.user_cache_dir("gpubench"))
