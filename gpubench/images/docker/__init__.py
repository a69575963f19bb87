"""Container images: built, pushed and pulled through a Docker engine, looked up in a registry without one."""

from gpubench.images.docker.build import BuildJob, BuildOutcome, Display, build_all
from gpubench.images.docker.engine import Engine, LocalImage
from gpubench.images.docker.names import Repository, require_architecture
from gpubench.images.docker.registry import FoundImage, Registry

__all__ = [
    "BuildJob",
    "BuildOutcome",
    "Display",
    "Engine",
    "FoundImage",
    "LocalImage",
    "Registry",
    "Repository",
    "build_all",
    "require_architecture",
]
