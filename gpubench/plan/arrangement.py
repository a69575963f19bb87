"""Whether the clusters of a block live at the same time: as the profile says, or wherever they can."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.errors import PlanRefusedError
from gpubench.model.site import Site
from gpubench.plan.block_design import interleaved
from gpubench.plan.cluster_shapes import plan_cluster_shapes
from gpubench.spec.turns import INTERLEAVED

if TYPE_CHECKING:
    from gpubench.plan.make import Request

LAUNCHERS = ("fork", "srun", "ssh")
"""Those that can have the supervisors of several runs on a node at the same time."""
RUNTIMES = ("conda", "docker", "modules", "venv")
"""Those that can enter images several times at once on a node."""
AUTO, SEQUENTIAL = "auto", "sequential"


def arranged(request: Request) -> tuple[Site, str]:
    """The request's profile with an arrangement in place of ``auto``, and why it isn't interleaved, else empty.

    With ``auto``, blocks are interleaved where clusters can take turns and their workers fit into the node's memory.
    """
    site = request.site
    if site.layout.arrangement != AUTO:
        return site, ""
    one_by_one, together = (
        site.model_copy(update={"layout": site.layout.model_copy(update={"arrangement": word})})
        for word in (SEQUENTIAL, INTERLEAVED)
    )
    if len(request.variants) < 2:
        return one_by_one, ""
    try:
        check_arrangement(together, [item.backend for item in request.workloads])
        if request.device != "cpu":
            raise PlanRefusedError("the memory pools of several clusters share a GPU only where that is asked for")
        plan_cluster_shapes(dataclasses.replace(request, site=together))
    except PlanRefusedError as error:
        return one_by_one, error.what
    return together, ""


def check_arrangement(site: Site, backends: Sequence[str]) -> None:
    """Raise PlanRefusedError where clusters can't take turns."""
    if not interleaved(site):
        return
    then = "take --arrangement sequential"
    if site.launcher not in LAUNCHERS:
        raise PlanRefusedError(
            f"site {site.name}: launcher {site.launcher} starts one run at a time on a node; "
            f"an interleaved block has all of its runs there (launchers that can: {', '.join(LAUNCHERS)})",
            then=then,
        )
    if site.runtime not in RUNTIMES:
        raise PlanRefusedError(
            f"site {site.name}: runtime {site.runtime} isn't known to have several runs on a node at the same time "
            f"(runtimes that can: {', '.join(RUNTIMES)})",
            then=then,
        )
    if "parsl" in backends:
        raise PlanRefusedError(
            "Parsl's executors live outside of a cluster's processes and can't be stopped", then=then
        )
