"""The job that looks whether a site is as its profile says: a job script of the site whose block holds two looks."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.render.environment import environment
from gpubench.render.job import of_the_site, place_of
from gpubench.render.planned import NODE_HALF
from gpubench.runtimes import RUNTIMES

JOB = "check"
LIMIT_S = 120
WARNING_S = 20.0
LOOK_S = 60
"""The script's block isn't begun with less time left."""
INSIDE = "inside.py"


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
        templates: texts by path below ``templates/``.
        inside: text of the program that runs in the image.
    """
    shell = environment(templates)
    # No run, no scheduler: nothing stands apart from the nodes.
    site = site.model_copy(update={"layout": site.layout.model_copy(update={"scheduler": "rank0", "client": "rank0"})})
    looks = [(["run"], ["bash", "facts.sh", site.interface])]
    if image is not None:
        runtime = RUNTIMES[site.runtime]
        command = runtime.command(image, [INSIDE, image.env.get("LD_LIBRARY_PATH", "").partition(":")[0]])
        looks.append((["launch"], [*runtime.prefix(place_of(site, site.device)), *command]))
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
            "limit_s": LIMIT_S,
            "gpubench": gpubench,
            "images": [],
            "in_image": [],
            "leaves_out": False,
        }
    )
    folder = f"jobs/{JOB}"
    return {
        f"{folder}/job.sh": script.encode(),
        f"{folder}/facts.sh": shell.get_template("common/facts.sh.j2").render().encode(),
        f"{folder}/{INSIDE}": inside.encode(),
        f"{folder}/specs/none": b"",
        NODE_HALF: node_pyz,
    }
