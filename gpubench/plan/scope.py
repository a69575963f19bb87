"""What a request comes to, whatever its images: clusters, seconds and blocks; or why no plan can be made. Pure."""

import dataclasses
from collections.abc import Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.plan import TimeModel
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.plan.adapter_combinations import check_combination
from gpubench.plan.block_design import ClusterShape
from gpubench.plan.block_pods import check_block_pods
from gpubench.plan.budget import blocks_that_fit
from gpubench.plan.feasibility import (
    check_arrangement,
    check_bounds,
    check_gpu_transports,
    check_needed_transports,
    plan_cluster_shapes,
)
from gpubench.plan.job_limits import blocks_of_a_job
from gpubench.plan.placement import check_placement, check_steps_of
from gpubench.plan.request import PROTOCOLS, Request

LEAST_RUN_S = 0.01
"""Least duration of a run, whatever a profile estimates."""


@dataclasses.dataclass(frozen=True)
class Scope:
    """``shapes`` in the order of the jobs; ``blocks`` at each of them, of which a job holds ``per_job`` at most.

    ``steps`` and ``left_out`` are lines about the steps of jobs, and about workloads that aren't measured everywhere.
    """

    shapes: Sequence[ClusterShape]
    time: TimeModel
    blocks: int
    per_job: int
    steps: Sequence[str]
    left_out: Sequence[str]

    @property
    def all_places_block_s(self) -> float:
        """Seconds of one block at every place together."""
        return self.time.block_s * len(self.shapes)


def plan_scope(request: Request) -> Scope:
    """The scope of the request, whose ``auto`` is resolved.

    Raises:
        PlanRefusedError: adapters that don't go together, numbers that no machine has, an unknown protocol, a budget
            that can't hold five blocks, a workload that wants pods where there are none, or another device.
    """
    _check(request)
    shapes, left_out = plan_cluster_shapes(request)
    steps = [line for shape in shapes for line in check_steps_of(request.site, *shape.place)]
    time = _time_model(request)
    blocks = request.blocks
    if request.budget_s is not None:
        blocks = blocks_that_fit(
            requested=request.blocks,
            variants=len(request.variants),
            all_places_block_s=time.block_s * len(shapes),
            budget_s=request.budget_s,
            firm=request.budget_firm,
            spent_s=request.tried.seconds if request.tried else 0.0,
        )
    return Scope(shapes, time, blocks, blocks_of_a_job(request.site, time.block_s), steps, left_out)


def _check(request: Request) -> None:
    site = request.site
    check_combination(site)
    if request.protocol not in PROTOCOLS:
        raise PlanRefusedError(f"no protocol '{request.protocol}'", then=f"there is: {', '.join(PROTOCOLS)}")
    check_bounds(site, request.nodes, request.workers or [site.layout.workers])
    check_placement(site, request.device)
    for item in request.workloads:
        devices = request.describe(item).devices
        if request.device not in (*devices, "auto"):  # auto: each node decides
            raise PlanRefusedError(
                f"{item.name} doesn't run on {request.device}", then=f"take a site with device = {devices[0]}"
            )
    for variant in request.variants:
        env = {**site.env, **variant.env}
        check_gpu_transports(request.device, request.protocol, env, f"variant {variant.label}")
        check_needed_transports(request, env, f"variant {variant.label}")
    check_arrangement(site, [item.backend for item in request.workloads])
    check_block_pods(site, request.workloads)


def _time_model(request: Request) -> TimeModel:
    if request.history:
        run_s = request.history.run_s
        source = request.history.source or f"median of {request.history.runs} runs of this shape on this machine"
    else:
        estimates = request.site.estimates
        run_s = estimates.run + sum(max(estimates.workload, _least_s(item)) for item in request.workloads)
        source = f"the profile of site {request.site.name}; no run of this shape is known here yet"
    run_s = max(round(run_s, 2), LEAST_RUN_S)
    return TimeModel(run_s=run_s, block_s=round(run_s * len(request.variants), 2), total_s=0.0, source=source)


def _least_s(item: WorkloadSpec) -> float:
    workload = CATALOGUE.get(item.name)
    return (item.reps + item.warmup) * workload.least_s(item.params) if workload else 0.0
