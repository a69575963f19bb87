"""Container images: built, pushed and pulled through a Docker engine, looked up in a registry without one."""

from gpubench.images.docker.build import BuildJob, BuildOutcome, Display, build_all
from gpubench.images.docker.engine import Engine, LocalImage
from gpubench.images.docker.names import Place, require_architecture
from gpubench.images.docker.registry import Found, Registry

__all__ = [
    "BuildJob",
    "BuildOutcome",
    "Display",
    "Engine",
    "Found",
    "LocalImage",
    "Place",
    "Registry",
    "build_all",
    "require_architecture",
]
