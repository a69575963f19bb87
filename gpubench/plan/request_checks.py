"""From a request to the clusters of its runs, or a refusal: what is known without an image. Pure."""

import dataclasses
import math
from collections.abc import Sequence

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.launchers import LAUNCHERS
from gpubench.model.quantities import format_seconds
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.plan.adapter_combinations import check_combination
from gpubench.plan.arrangement import resolve_arrangement
from gpubench.plan.block_design import ClusterShape
from gpubench.plan.block_pods import check_block_pods
from gpubench.plan.feasibility import check_bounds
from gpubench.plan.placement import check_placement
from gpubench.plan.request import PROTOCOLS, Request
from gpubench.plan.transports import check_gpu_transports, check_needed_transports
from gpubench.plan.worker_memory import plan_cluster_shapes


@dataclasses.dataclass(frozen=True)
class PlannedClusters:
    """``shapes`` in the order of the jobs; ``notes`` on the steps of jobs, and on workloads not measured everywhere."""

    shapes: Sequence[ClusterShape]
    notes: Sequence[str]


def plan_clusters(request: Request) -> tuple[Request, PlannedClusters]:
    """The request with its arrangement resolved, and its clusters, whatever a run takes.

    Raises:
        UsageError: an adapter or a protocol that doesn't exist.
        PlanRefusedError: adapters that don't go together, numbers that no machine has, a workload that wants pods where
            there are none, another device, more memory, or more time than a workload gets.
    """
    site = request.site
    check_combination(site)
    if request.protocol not in PROTOCOLS:
        raise UsageError(f"no protocol '{request.protocol}'", then=f"there is: {', '.join(PROTOCOLS)}")
    check_bounds(site, request.nodes, request.workers or [site.layout.workers])
    check_placement(site, request.device)
    described = [request.describe(item) for item in request.workloads]
    for workload in described:
        if request.device not in (*workload.devices, "auto"):  # auto: each node decides
            raise PlanRefusedError(
                f"{workload.name} doesn't run on {request.device}",
                then=f"take a site with device = {workload.devices[0]}",
            )
    for variant in request.variants:
        env = {**site.env, **variant.env}
        check_gpu_transports(request.device, request.protocol, env, f"variant {variant.label}")
        check_needed_transports(request, env, f"variant {variant.label}")
    _check_limit_of_workloads(request)
    request = resolve_arrangement(request, described)
    check_block_pods(site, request.workloads)
    shapes, left_out = plan_cluster_shapes(request, described)
    steps = [line for shape in shapes for line in LAUNCHERS[site.launcher].check_steps(site, *shape.place)]
    return request, PlannedClusters(shapes, [*dict.fromkeys(steps), *left_out])


def least_s(item: WorkloadSpec) -> float:
    """Seconds that all repetitions of a workload take because its parameters say so; 0 where they don't."""
    workload = CATALOGUE.get(item.name)
    return (item.reps + item.warmup) * workload.least_s(item.params) if workload else 0.0


def _check_limit_of_workloads(request: Request) -> None:
    for item in request.workloads:
        if least_s(item) > item.timeout_s:
            raise PlanRefusedError(
                f"{item.name} with target = {format_seconds(item.params['target'])} takes "
                f"{format_seconds(least_s(item))}, {item.reps} repetitions and {item.warmup} to warm up, and one "
                f"workload of a run gets {format_seconds(item.timeout_s)}",
                then=f"lower target or reps, or --set limits.workload={math.ceil(least_s(item) / 30)}m",
            )
