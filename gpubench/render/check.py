"""Small jobs that look at a site's nodes: whether they are as the profile says, and what dead jobs left there."""

from collections.abc import Mapping
from typing import Any

import jinja2

from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.render.jinja import environment
from gpubench.render.job import of_the_site, place_of
from gpubench.render.node_half import NODE_HALF
from gpubench.runtimes import RUNTIMES

JOB = "check"
LIMIT_S = 300
"""No queue of Polaris takes a shorter job."""
REMOVE_LIMIT_S = 900
"""Removing a container takes up to a minute."""
WARNING_S = 20.0
LOOK_S = 60
"""The script's block isn't begun with less time left."""
INSIDE = "inside.py"
FACTS = "facts"
"""The directory in which each node leaves a file."""
LEFT = "left"
"""End of the names of the files in which nodes say what dead jobs left there."""
_FOLDER = f"jobs/{JOB}"


def render_check(
    site: Site,
    nodes: int,
    image: Image | None,
    templates: Mapping[str, str],
    *,
    inside: str,
    node_pyz: bytes,
    gpubench: str,
) -> dict[str, bytes]:
    """Every file of the check by its path, in the shape of a campaign: containers mount the parts of one.

    Args:
        image: to look inside of; None: only at the nodes.
        inside: text of the program that runs in the image.
    """
    shell = environment(templates)
    looks = [(["run"], ["bash", "facts.sh", site.interface])]
    if image is not None:
        runtime = RUNTIMES[site.runtime]
        command = runtime.command(image, [INSIDE, image.env.get("LD_LIBRARY_PATH", "")])
        looks.append((["launch"], [*runtime.prefix(place_of(site, site.device)), *command]))
    return {
        f"{_FOLDER}/job.sh": _script(shell, site, nodes, looks, gpubench=gpubench),
        f"{_FOLDER}/facts.sh": shell.get_template("common/facts.sh.j2").render().encode(),
        f"{_FOLDER}/{INSIDE}": inside.encode(),
        f"{_FOLDER}/specs/none": b"",
        NODE_HALF: node_pyz,
    }


def render_clean(
    site: Site, nodes: int, templates: Mapping[str, str], *, remove: bool, gpubench: str
) -> dict[str, bytes]:
    """Every file of the job that looks for what dead jobs left, and with ``remove`` removes it."""
    shell, left = environment(templates), RUNTIMES[site.runtime].CLEAN_TEMPLATE
    looks = [(["run"], ["bash", "left.sh", "remove" if remove else "list"])]
    # The runtime's own shell would remove some of it at once.
    shown = {"runtime": left, "on_node": False, "leaves": False}
    limit_s = REMOVE_LIMIT_S if remove else LIMIT_S
    script = _script(shell, site, nodes, looks, limit_s=limit_s, gpubench=gpubench, **shown)
    return {
        f"{_FOLDER}/job.sh": script,
        f"{_FOLDER}/left.sh": shell.get_template("common/left.sh.j2").render(left=left, on_node=True).encode(),
        f"{_FOLDER}/specs/none": b"",
    }


def _script(
    shell: jinja2.Environment,
    site: Site,
    nodes: int,
    looks: list[tuple[list[str], list[str]]],
    *,
    limit_s: int = LIMIT_S,
    gpubench: str,
    **changes: Any,
) -> bytes:
    # No run, no scheduler: nothing stands apart from the nodes.
    site = site.with_layout(scheduler="rank0", client="rank0")
    # The profile's own warning may be longer than this job.
    batch = site.batch.model_copy(update={"warning": WARNING_S})
    script = shell.get_template(f"{site.scheduler}/job.sh.j2").render(
        {
            **of_the_site(site),
            "batch": batch,
            "job": JOB,
            "nodes": nodes,
            "blocks": [{"number": 1, "seconds": LOOK_S, "conductor": [], "commands": looks}],
            "runs": 0,
            "about": "a minute",
            "limit_s": limit_s,
            "gpubench": gpubench,
            "images": [],
            "in_image": [],
            "skips_runs": False,
            **changes,
        }
    )
    return script.encode()
