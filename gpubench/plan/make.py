"""The plan of a campaign: its jobs, its family of comparisons, and notes for people. Pure."""

import dataclasses
import itertools
import random
import types
from collections.abc import Mapping, Sequence

from gpubench.model.image import Image
from gpubench.model.plan import Comparison, Plan, PlannedJob, PlannedVariant
from gpubench.model.quantities import format_bytes, format_seconds
from gpubench.model.text import counted
from gpubench.model.variant import ImageSpec
from gpubench.node.spec.waiting import crowded, polls
from gpubench.plan.block_design import ClusterShape, campaign_orders, interleaved, new_job, plan_block
from gpubench.plan.budget import MOST_TO_FILL
from gpubench.plan.detectable import power_by_first_pass, predict_for_plan
from gpubench.plan.job_limits import job_limit
from gpubench.plan.known_issues import apply_issues
from gpubench.plan.request import Request
from gpubench.plan.scope import Scope
from gpubench.plan.worker_memory import clusters_at_once

RECORDED = {field.name for field in dataclasses.fields(Request)} & Plan.model_fields.keys()
"""What the plan keeps of the request as it is, or as ``make_plan`` has worked it out."""


def make_plan(
    request: Request,
    scope: Scope,
    *,
    campaign: str,
    created_at: str,
    images: Mapping[str, Image | None] = types.MappingProxyType({}),
) -> Plan:
    """Plan every run of the campaign; what is possible at all, the scope has settled.

    Args:
        request: with ``auto`` resolved.
        scope: the request's.
        campaign: the name, which is in the id of every run.
        created_at: when, in ISO 8601.
        images: by UCX spec; None, or absent, where there is none yet.
    """
    variants = [PlannedVariant(**dict(item), image=images.get(item.ucx)) for item in request.variants]
    applied, about_issues = apply_issues(
        request.known_issues,
        site=request.site,
        protocol=request.protocol,
        variants=variants,
        nodes=request.nodes,
        today=created_at[:10],
    )
    shapes = scope.clusters.shapes
    comparisons = _comparisons(request, shapes)
    pilot = request.history.pilot if request.history else ()
    foreseen = predict_for_plan(comparisons, scope.blocks, request.margin, pilot)
    layouts = len({shape.place[1] for shape in shapes})
    skipped = len({(issue.nodes, issue.variant) for issue in applied if issue.action == "skip"})
    total_s = round(scope.blocks * (scope.time.block_s * len(shapes) - skipped * layouts * scope.time.run_s), 1)
    by_first_pass = power_by_first_pass(request, scope.blocks, foreseen, family=len(comparisons))
    notes = [*request.repetitions, *by_first_pass, *_notes(request, scope), *_notes_on_variants(request, variants)]
    recorded = {name: getattr(request, name) for name in RECORDED} | {"variants": variants, "known_issues": applied}
    return Plan(
        **recorded,
        campaign=campaign,
        created_at=created_at,
        device=request.device,
        threads_per_worker=request.site.layout.threads,
        jobs=_jobs(request, scope, campaign),
        comparisons=comparisons,
        foreseen=foreseen,
        time=scope.time.model_copy(update={"total_s": total_s}),
        notes=[*notes, *scope.clusters.notes, *about_issues],
        first_pass=request.tried.campaign if request.tried else "",
    )


def _jobs(request: Request, scope: Scope, campaign: str) -> list[PlannedJob]:
    labels, places = [variant.label for variant in request.variants], [shape.place for shape in scope.clusters.shapes]
    reps = {item.params_id: item.reps for item in request.workloads} if interleaved(request.site) else None
    rng = random.Random(request.seed)  # noqa: S311 - a shuffle that anybody can repeat
    numbers, timeouts = itertools.count(1), [item.timeout_s for item in request.workloads]
    jobs: list[PlannedJob] = []
    for shape in scope.clusters.shapes:
        orders = campaign_orders(request.seed, shape.place, len(labels), scope.blocks)
        for start in range(0, scope.blocks, scope.per_job):
            blocks = [
                plan_block(
                    campaign,
                    number=next(numbers),
                    place=shape.place,
                    order=[labels[at] for at in order],
                    workloads=shape.workloads,
                    rng=rng,
                    reps=reps,
                )
                for order in orders[start : start + scope.per_job]
            ]
            limit_s = job_limit(
                request.site, scope.time.block_s * len(blocks), timeouts, measured=request.history is not None
            )
            memory_limit = shape.memory_limit
            jobs.append(
                new_job(len(jobs) + 1, shape.place, places, memory_limit=memory_limit, limit_s=limit_s, blocks=blocks)
            )
    return jobs


def _comparisons(request: Request, shapes: Sequence[ClusterShape]) -> list[Comparison]:
    baseline, *candidates = [variant.label for variant in request.variants]
    return [
        Comparison(
            workload=item.name,
            backend=item.backend,
            params_id=item.params_id,
            nodes=shape.place[0],
            workers_per_node=shape.place[1],
            threads_per_worker=request.site.layout.threads,
            baseline=baseline,
            candidate=candidate,
        )
        for shape in shapes
        for item in request.workloads
        if item.params_id in shape.workloads
        for candidate in candidates
    ]


def _notes(request: Request, scope: Scope) -> list[str]:
    shapes, blocks = scope.clusters.shapes, scope.blocks
    notes = []
    if blocks < request.blocks:
        instead = "" if request.blocks == MOST_TO_FILL else f" instead of {request.blocks}"
        planned_s = blocks * scope.time.block_s * len(shapes)
        too_long = request.budget_s is not None and planned_s > request.budget_s
        why = f"the most within the budget, in steps of {len(request.variants)}, one for each variant"
        if too_long:
            why = f"the fewest that a budget plans, longer than the site's of {format_seconds(request.budget_s or 0.0)}"
        notes.append(f"{counted(blocks, 'block')}{instead}: {why}")
    if blocks < 5 and len(request.variants) > 1:
        what = "" if blocks >= 3 else "no verdict can be given below 3; "
        notes.append(f"{counted(blocks, 'block')}: {what}5 or more are advised")
    busy = max(nodes * workers for nodes, workers in (shape.place for shape in shapes)) * request.site.layout.threads
    if request.site.layout.one_machine and busy > request.machine_cores > 0:
        notes.append(
            f"more threads than cores: {busy} worker threads, a scheduler and a client on {request.machine_cores} cores"
        )
    polling = max((_polling(request, *shape.place) for shape in shapes), default=0)
    if request.machine_cores and (line := crowded(polling, request.machine_cores, "")):
        notes.append(line)
    if (alive := clusters_at_once(request)) > 1:
        notes.append(f"interleaved: {alive} clusters of a block are alive at once; one works, the others are stopped")
    elif request.not_interleaved:
        notes.append(f"sequential: {request.not_interleaved}")
    if request.site.layout.waiting == "event" and request.protocol == "ucx":
        notes.append("waiting: processes that wait for messages sleep (layout.waiting = event)")
    for workers, limit in {shape.place[1]: shape.memory_limit for shape in shapes}.items():
        share = f"{format_bytes(limit)} each" if limit else "half of its memory for all of them"
        device = "a GPU each, " if request.device == "gpu" else ""
        notes.append(f"{counted(workers, 'worker')} per node, {device}{share}")
    return notes


def _notes_on_variants(request: Request, variants: Sequence[PlannedVariant]) -> list[str]:
    # Same image and same variables in force as the baseline.
    settings = [(item.image.id if item.image else item.ucx, {**request.site.env, **item.env}) for item in variants]
    same = [item.label for item, other in zip(variants, settings, strict=True) if other == settings[0]]
    notes = []
    if len(same) > 1:
        notes.append(
            f"A against A: {' and '.join(same)} are the same image with the same settings; every alarm would be false"
        )
    of_ucx = {
        (ImageSpec.parse(item.ucx).ucx, *sorted(pair for pair in item.env.items() if pair[0].startswith("UCX")))
        for item in variants
    }
    if request.protocol == "tcp" and len(of_ucx) > 1:
        notes.append("protocol tcp: Dask sends nothing by UCX, so its versions and settings change nothing")
    return notes


def _polling(request: Request, nodes: int, workers: int) -> int:
    """Processes of one run that poll while they wait, on the machine that has most of them."""
    layout = request.site.layout
    if not any(polls(request.protocol, {**request.site.env, **variant.env}) for variant in request.variants):
        return 0
    beside = [layout.scheduler == "rank0", layout.client == "rank0"]
    return workers * (nodes if layout.one_machine else 1) + sum(beside)
