"""What a request comes to, whatever its images: its clusters, seconds and blocks. Pure."""

import dataclasses

from gpubench.model.plan import TimeModel
from gpubench.plan.budget import blocks_that_fit
from gpubench.plan.job_limits import blocks_of_a_job
from gpubench.plan.request import Request
from gpubench.plan.request_checks import PlannedClusters, least_s

LEAST_RUN_S = 0.01
"""Least duration of a run, whatever a profile estimates."""


@dataclasses.dataclass(frozen=True)
class Scope:
    """``blocks`` at each shape of the clusters, of which a job holds ``per_job`` at most."""

    clusters: PlannedClusters
    time: TimeModel
    blocks: int
    per_job: int


def plan_scope(request: Request, clusters: PlannedClusters) -> Scope:
    """The scope of a request with these clusters.

    Raises:
        PlanRefusedError: a budget that can't hold five blocks, or a block that is longer than a job.
    """
    time = _time_model(request)
    blocks = request.blocks
    if request.budget_s is not None:
        blocks = blocks_that_fit(
            requested=request.blocks,
            variants=len(request.variants),
            all_places_block_s=time.block_s * len(clusters.shapes),
            budget_s=request.budget_s,
            firm=request.budget_firm,
            spent_s=request.tried.seconds if request.tried else 0.0,
        )
    return Scope(clusters, time, blocks, blocks_of_a_job(request.site, time.block_s))


def _time_model(request: Request) -> TimeModel:
    if request.history:
        run_s = request.history.run_s
        source = (
            request.history.source
            or f"median of {request.history.runs} runs of {request.history.campaign}, which had the same shape"
        )
    else:
        estimates = request.site.estimates
        run_s = estimates.run + sum(max(estimates.workload, least_s(item)) for item in request.workloads)
        guess = "" if "estimates" in request.site.model_fields_set else ", which has no [estimates]: a guess"
        source = (
            f"the profile of site {request.site.name}{guess}, whatever the repetitions; no run like these is known yet"
        )
    run_s = max(round(run_s, 2), LEAST_RUN_S)
    return TimeModel(run_s=run_s, block_s=round(run_s * len(request.variants), 2), total_s=0.0, source=source)
