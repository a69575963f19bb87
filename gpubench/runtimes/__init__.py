"""How the node half's command runs inside the image: a line in the dict each, and a module if not by a plain Python."""

from gpubench.runtimes.apptainer import Apptainer
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime
from gpubench.runtimes.docker import Docker
from gpubench.runtimes.enroot import Enroot
from gpubench.runtimes.modules import Modules
from gpubench.runtimes.pyxis import Pyxis

RUNTIMES: dict[str, Runtime] = {
    "apptainer": Apptainer(),
    "conda": Runtime("conda"),  # not activated: hooks of an activation set what no variant names
    "docker": Docker(),
    "enroot": Enroot(),
    "modules": Modules(),
    # The cluster pulls the image and starts the container; the object file names both.
    "pod": Runtime("docker", ("indexed-job",)),
    "pyxis": Pyxis(),
    "venv": Runtime("venv"),
}

__all__ = ["RUNTIMES", "Expanded", "ImagePlace", "Runtime"]
