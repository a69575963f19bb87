"""From a profile to a playbook on disk that prepares the site's nodes."""

import logging
import os
from pathlib import Path

from gpubench import resources
from gpubench.errors import PlanRefusedError
from gpubench.files import write_atomically
from gpubench.images.obtain import kind_of
from gpubench.images.recipes import recipes
from gpubench.model.site import Site
from gpubench.render.ansible import PLAYBOOK, render_prereqs

_log = logging.getLogger(__name__)

WITHOUT_UCX = "none"
"""The stack's own packages are the same for every UCX, which is built into the prefix later."""


def write_prereqs(site: Site, out: Path | None) -> None:
    """Write the playbook and the conda environment of the site's stack, and say how to run it.

    Raises:
        PlanRefusedError: the nodes need no preparation, or the profile names no absolute directory for images.
    """
    if kind_of(site) != "conda":
        raise PlanRefusedError(
            f"runtime {site.runtime} of site {site.name} needs no conda on the nodes", then="see gpubench images build"
        )
    shared = os.path.expandvars(site.paths.images)
    if not shared.startswith("/"):
        raise PlanRefusedError(
            f"site {site.name} names no absolute directory that every node sees",
            then="set paths.images in the profile, or --set paths.images=/…",
        )
    (recipe,) = recipes([WITHOUT_UCX], site)
    folder = out or Path(site.paths.outputs) / "prereqs" / site.name
    files = render_prereqs(site, recipe, shared, resources.texts("templates", "**/*.j2"), resources.docker_sources())
    for name, data in files.items():
        write_atomically(folder / name, data)
        _log.info(str(folder / name))
    _log.info(f"to prepare the nodes: ansible-playbook -i INVENTORY {folder / PLAYBOOK}")
