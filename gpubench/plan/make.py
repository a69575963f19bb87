"""The plan of a campaign.

The differences that the planned blocks can detect, from the noise of an earlier campaign or from assumed noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpubench.errors import PlanRefusedError
from gpubench.model.image import Image, Variant
from gpubench.model.known_issue import KnownIssue
from gpubench.model.own_workload import OwnWorkload
from gpubench.model.plan import (
    Comparison,
    Place,
    Plan,
    PlannedVariant,
    PlannedWorkload,
    PowerPrediction,
    TimeModel,
)
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.plan.adapter_combinations import BLOCKS_PER_JOB, check_combination
from gpubench.plan.block_design import ClusterShape, interleaved, plan_jobs
from gpubench.plan.block_pods import check_block_pods
from gpubench.plan.budget import MOST_BLOCKS, blocks_that_fit, with_limits
from gpubench.plan.feasibility import (
    check_arrangement,
    check_bounds,
    check_gpu_transports,
    check_needed_transports,
    clusters_at_once,
    plan_cluster_shapes,
)
from gpubench.plan.known_issues import apply_issues
from gpubench.plan.placement import check_placement, check_steps_of
from gpubench.spec import WorkloadSpec
from gpubench.spec.waiting import crowded, polls
from gpubench.stats.data import ComparisonInput
from gpubench.stats.settings import Margin, Summary
from gpubench.workloads.catalogue import CATALOGUE, Workload

PROTOCOLS = ("tcp", "ucx")
LEAST_RUN_S = 0.01
"""Least duration of a run, whatever a profile estimates."""


@dataclasses.dataclass(frozen=True)
class History:
    """An earlier campaign of the same shape here: median seconds of a run, and its comparisons as a pilot.

    ``source`` says where the seconds come from if they aren't its own.
    """

    campaign: str
    run_s: float
    runs: int
    pilot: Sequence[ComparisonInput] = ()
    source: str = ""


@dataclasses.dataclass(frozen=True)
class Request:
    """Everything that decides a plan; the front end has read the files and the clock.

    ``workers`` are the counts per node, none: the profile's. ``machine_memory`` in bytes and ``machine_cores`` describe
    one node, 0: not known. ``images`` hold an image per UCX spec, None where it isn't built. ``budget_firm`` says that
    the user gave the budget (the site's own is a default, not a limit), ``spent_s`` how much of it is used already.
    ``not_interleaved`` says why, if the profile left that open. ``power`` is None if none was given.
    ``first_pass`` is the campaign from which the repetitions were derived, ``repetitions`` says how; both may be empty.
    ``known_issues`` are all rules there are. ``own`` are the workloads that come from files of the user.
    """

    campaign: str
    created_at: str
    gpubench: str
    site: Site
    suite: str
    workloads: Sequence[WorkloadSpec]
    variants: Sequence[Variant]
    images: dict[str, Image | None]
    nodes: Sequence[int]
    blocks: int
    seed: int
    protocol: str
    device: str
    machine_cores: int
    machine_memory: int
    workers: Sequence[int] = ()
    margin: float | None = None
    summary: Summary = "mean"
    budget_s: float | None = None
    budget_firm: bool = False
    spent_s: float = 0.0
    history: History | None = None
    power: float | None = None
    known_issues: Sequence[KnownIssue] = ()
    not_interleaved: str = ""
    first_pass: str = ""
    repetitions: Sequence[str] = ()
    own: Sequence[OwnWorkload] = ()

    def describe(self, planned: WorkloadSpec) -> Workload:
        """What is known of a workload; raises KeyError for one that is neither in the catalogue nor in ``own``."""
        mine = [one.described for one in self.own if one.is_of(planned)]
        return mine[0] if mine else CATALOGUE[planned.name]


def make_plan(request: Request) -> Plan:
    """Plan every run of the campaign.

    Raises:
        PlanRefusedError: adapters that don't go together, numbers that no machine has, an unknown protocol, a budget
            that can't hold five blocks, a workload that wants pods where there are none, or another device.
    """
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
    shapes, left_out = plan_cluster_shapes(request)
    steps = [line for shape in shapes for line in check_steps_of(site, *shape.place)]
    time = _time_model(request)
    all_places_s = time.block_s * len(shapes)
    blocks = request.blocks
    if request.budget_s is not None:
        blocks = blocks_that_fit(
            asked=request.blocks,
            variants=len(request.variants),
            all_places_block_s=all_places_s,
            budget_s=request.budget_s,
            firm=request.budget_firm,
            spent_s=request.spent_s,
        )
    jobs = plan_jobs(
        request.campaign,
        shapes=shapes,
        blocks=blocks,
        variants=[variant.label for variant in request.variants],
        seed=request.seed,
        block_s=time.block_s,
        limit_s=site.limits.job,
        per_job=BLOCKS_PER_JOB.get(site.launcher),
        reps={item.params_id: item.reps for item in request.workloads} if interleaved(site) else None,
    )
    timeouts = [item.timeout_s for item in request.workloads]
    jobs = with_limits(jobs, site, time.block_s, timeouts, measured=request.history is not None)
    variants = [
        PlannedVariant(label=item.label, ucx=item.ucx, env=item.env, image=request.images.get(item.ucx))
        for item in request.variants
    ]
    applied, about_issues = apply_issues(
        request.known_issues,
        site=site,
        protocol=request.protocol,
        variants=variants,
        nodes=request.nodes,
        today=request.created_at[:10],
    )
    margin = site.defaults.margin if request.margin is None else request.margin
    foreseen, assumed = predict_for_plan(
        request.history.pilot if request.history else (),
        workloads=request.workloads,
        comparisons=(comparisons := _comparisons(request, shapes)),
        blocks=blocks,
        margin=margin,
        summary=request.summary,
        power=request.power,
    )
    layouts = len({shape.place[1] for shape in shapes})
    skipped = len({(one.nodes, one.variant) for one in applied if one.action == "skip"})
    return Plan(
        campaign=request.campaign,
        created_at=request.created_at,
        gpubench=request.gpubench,
        seed=request.seed,
        site=site,
        suite=request.suite,
        workloads=[PlannedWorkload(**dataclasses.asdict(item), params_id=item.params_id) for item in request.workloads],
        variants=variants,
        protocol=request.protocol,
        device=request.device,
        threads_per_worker=site.layout.threads,
        margin=margin,
        summary=request.summary,
        jobs=jobs,
        comparisons=comparisons,
        power=request.power or DEFAULT_POWER,
        foreseen=foreseen,
        known_issues=applied,
        time=time.model_copy(update={"total_s": round(blocks * (all_places_s - skipped * layouts * time.run_s), 1)}),
        budget_s=request.budget_s,
        notes=[*_notes(request, shapes, blocks), *assumed, *dict.fromkeys(steps), *left_out, *about_issues],
        first_pass=request.first_pass,
    )


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
    known = CATALOGUE.get(item.name)
    return (item.reps + item.warmup) * known.least_s(item.params) if known else 0.0


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


def _notes(request: Request, shapes: Sequence[ClusterShape], blocks: int) -> list[str]:
    notes = [*request.repetitions]
    if blocks < request.blocks:
        instead = "" if request.blocks == MOST_BLOCKS else f" instead of {request.blocks}"
        notes.append(f"{counted(blocks, 'block')}{instead}: the most whole balanced sets within the budget")
    if blocks < 5 and len(request.variants) > 1:
        notes.append(f"{counted(blocks, 'block')}: with fewer than 5 hardly any difference can be confirmed")
    busy = max(nodes * workers for nodes, workers in (shape.place for shape in shapes)) * request.site.layout.threads
    if request.site.layout.one_machine and busy > request.machine_cores > 0:
        notes.append(
            f"over-subscribed: {busy} worker threads, a scheduler and a client on {request.machine_cores} cores"
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
        notes.append(f"{counted(workers, 'worker')} per node, {share}")
    # Same image and same variables in force as the baseline.
    what = [
        (image.id if (image := request.images.get(item.ucx)) else item.ucx, {**request.site.env, **item.env})
        for item in request.variants
    ]
    same = [item.label for item, one in zip(request.variants, what, strict=True) if one == what[0]]
    if len(same) > 1:
        notes.append(
            f"A against A: {' and '.join(same)} are the same image with the same settings; every alarm would be false"
        )
    return notes


def _polling(request: Request, nodes: int, workers: int) -> int:
    """Processes of one run that poll while they wait, on the machine that has most of them."""
    layout = request.site.layout
    if not any(polls(request.protocol, {**request.site.env, **variant.env}) for variant in request.variants):
        return 0
    beside = [layout.scheduler == "rank0", layout.client == "rank0"]
    return workers * (nodes if layout.one_machine else 1) + sum(beside)


if TYPE_CHECKING:
    from gpubench.stats.power import Sigma

DEFAULT_POWER = 0.9
ASSUMED_RESTARTS = (0.004, 0.008, 0.015)
"""Standard deviations between runs of one version: a quiet, a usual and a restless machine."""
ASSUMED_ITERATION = 0.01


def predict_for_plan(
    pilot: Sequence[ComparisonInput],
    *,
    workloads: Sequence[WorkloadSpec],
    comparisons: Sequence[Comparison],
    blocks: int,
    margin: float,
    summary: Summary,
    power: float | None,
) -> tuple[list[PowerPrediction], list[str]]:
    """What ``blocks`` detect, per workload and place of the pilot; without a pilot a note, if a power was given."""
    # One block or two carry no verdict, whatever they show.
    if blocks < 3 or not comparisons or (not pilot and power is None):
        return [], []
    if not pilot:
        reps = min(one.reps for one in workloads)
        return [], [_assumed(reps, len(comparisons), blocks, margin, power or DEFAULT_POWER)]
    # Late: scipy takes more than a second, which a mistyped word needn't wait for.
    from gpubench.stats.power import predict  # noqa: PLC0415

    noisiest = _noisiest(pilot, summary)
    found = []
    for cell, name in {(one.params_id, one.place): one.workload for one in comparisons}.items():
        if cell in noisiest:
            at = {"params_id": cell[0], "nodes": cell[1][0], "workers_per_node": cell[1][1]}
            figures = predict(
                noisiest[cell], blocks=blocks, family=len(comparisons), margin=margin, power=power or DEFAULT_POWER
            )
            found.append(PowerPrediction.model_validate({"workload": name, **at, **figures}))
    return found, []


def _noisiest(pilot: Sequence[ComparisonInput], summary: Summary) -> dict[tuple[str, Place], Sigma]:
    """Of each workload and place the σ_d of its noisiest comparison."""
    from gpubench.stats.power import pilot_sigmas  # noqa: PLC0415

    noisiest: dict[tuple[str, Place], Sigma] = {}
    for one, sigma in zip(pilot, pilot_sigmas(pilot, summary), strict=True):
        nodes, workers = (int(str(one.key[name])) for name in ("nodes", "workers_per_node"))
        cell = (str(one.key["params_id"]), (nodes, workers))
        if sigma is not None and (cell not in noisiest or sigma.upper > noisiest[cell].upper):
            noisiest[cell] = sigma
    return noisiest


def _assumed(reps: int, family: int, blocks: int, margin: float, power: float) -> str:
    from gpubench.stats.power import blocks_needed, detectable_effect, sigma_from_parts  # noqa: PLC0415

    sigmas = [sigma_from_parts(restart, ASSUMED_ITERATION, reps) for restart in ASSUMED_RESTARTS]
    finds = _either(f"{100 * detectable_effect(sigma, blocks, family, power):.1f}" for sigma in sigmas)
    takes = _either(str(blocks_needed(margin, sigma, family, power) or "over 200") for sigma in sigmas)
    return (
        f"the noise here is not known: no earlier campaign of this shape. If runs of one version scatter by "
        f"{_either(f'{100 * restart:g}' for restart in ASSUMED_RESTARTS)} % and samples by "
        f"{100 * ASSUMED_ITERATION:g} %, {blocks} blocks find {finds} %, and {Margin(margin).percent} takes {takes} "
        f"blocks, each with {100 * power:g} % power among {counted(family, 'comparison')}"
    )


def _either(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}"
