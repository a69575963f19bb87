"""How a block runs its variants: whether their clusters can take turns. Pure."""

import dataclasses
from collections.abc import Sequence

from gpubench.errors import PlanRefusedError
from gpubench.launchers import LAUNCHERS
from gpubench.node.spec.turns import INTERLEAVED, SEQUENTIAL
from gpubench.node.workloads.catalogue import Workload
from gpubench.plan.block_design import interleaved
from gpubench.plan.request import Request
from gpubench.plan.worker_memory import plan_cluster_shapes
from gpubench.runtimes import RUNTIMES


def resolve_arrangement(request: Request, described: Sequence[Workload]) -> Request:
    """The request with an arrangement in place of ``auto``, and why blocks aren't interleaved then.

    With ``auto``, blocks are interleaved where clusters can take turns and their workers fit into the node's memory;
    ``described`` is what is known of each workload.

    Raises:
        PlanRefusedError: the profile wants interleaved blocks, and clusters can't take turns.
    """
    if request.site.layout.arrangement != "auto":
        _check_turns(request)
        return request
    sequential_request = dataclasses.replace(request, site=request.site.with_layout(arrangement=SEQUENTIAL))
    interleaved_request = dataclasses.replace(request, site=request.site.with_layout(arrangement=INTERLEAVED))
    if len(request.variants) < 2:
        return sequential_request
    try:
        _check_turns(interleaved_request)
        if request.device != "cpu":
            raise PlanRefusedError("the memory pools of several clusters share a GPU only if that is asked for")
        plan_cluster_shapes(interleaved_request, described)
    except PlanRefusedError as error:
        return dataclasses.replace(sequential_request, not_interleaved=error.what)
    return interleaved_request


def _check_turns(request: Request) -> None:
    """Raise PlanRefusedError where blocks are interleaved, and clusters can't take turns."""
    site = request.site
    if not interleaved(site):
        return
    if not LAUNCHERS[site.launcher].can_interleave:
        able = ", ".join(name for name, launcher in LAUNCHERS.items() if launcher.can_interleave)
        fault = (
            f"site {site.name}: launcher {site.launcher} starts one run at a time on a node; "
            f"an interleaved block has all of its runs there (launcher {able} can)"
        )
    elif not RUNTIMES[site.runtime].CAN_INTERLEAVE:
        able = ", ".join(
            name for name, runtime in RUNTIMES.items() if runtime.CAN_INTERLEAVE and site.launcher in runtime.LAUNCHERS
        )
        fault = (
            f"site {site.name}: runtime {site.runtime} isn't known to have several runs on a node at the same time "
            f"(runtimes that can: {able})"
        )
    elif any(item.backend == "parsl" for item in request.workloads):
        fault = "Parsl's executors live outside of a cluster's processes and can't be stopped"
    else:
        return
    raise PlanRefusedError(fault, then="give --set layout.arrangement=sequential")
