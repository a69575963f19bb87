"""Where the tables and locks lie: ``docker/`` of a checkout, or its copy inside the installed wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def docker_file(name: str) -> Path:
    """Path of a file below ``docker/``."""
    packed = PACKAGE / "_data" / "docker"
    return (packed if packed.is_dir() else PACKAGE.parent / "docker") / name
