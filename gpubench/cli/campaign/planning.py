"""From the user's options to a planned campaign on disk; and the duration and noise of an earlier one like it."""

import dataclasses
import datetime as dt
import functools
import itertools
import os
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench import __version__, resources
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.campaign.preflight import can_submit, planned_images, require_account
from gpubench.cli.images.obtain import obtain_images
from gpubench.cli.sites.gpus import require_own_gpus
from gpubench.cli.sites.profiles import expanded, known_issues, load_site, load_suite
from gpubench.cli.workloads.catalogue import own_workloads
from gpubench.errors import GpubenchError, UsageError
from gpubench.files import write_atomically
from gpubench.images.compatibility import with_waiting
from gpubench.images.kinds.base import Found
from gpubench.images.variables import check_listed, check_variables
from gpubench.model.image import Image, Variant
from gpubench.model.own_workload import OwnWorkload, packed_together
from gpubench.model.plan import Plan
from gpubench.model.site import Site
from gpubench.plan.block_pods import check_packages
from gpubench.plan.budget import MOST_BLOCKS, FirstPass
from gpubench.plan.feasibility import resolve_arrangement, worker_memory
from gpubench.plan.make import History, Request, make_plan
from gpubench.plan.placement import check_graphs
from gpubench.render.job import rendered
from gpubench.render.planned import NODE_HALF, pack
from gpubench.schedulers import LOCAL
from gpubench.spec import WorkloadSpec
from gpubench.spec.plain import content_id
from gpubench.stats.data import ComparisonInput
from gpubench.stats.settings import Margin, VerdictSettings
from gpubench.store.accounting import account
from gpubench.store.campaign import PLAN_FILE, Campaign, create_campaign, require_place
from gpubench.store.rundirs import record_seconds

SEEDS = 2**31
EPOCH = "19700101"
ALIKE = 1.5
"""Repetitions of an earlier campaign's runs over those that are planned, at most, where the one foretells the other."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CampaignRequest(Request):
    """The user's options, read and checked; nothing is built or written yet. Planning adds name, time, seed and images.

    ``tried`` is the first pass that the repetitions follow from, where one was made.
    """

    options: CampaignOptions
    outputs: Path
    chooses_repetitions: bool = False
    tried: FirstPass | None = None


def parse_request(options: CampaignOptions) -> CampaignRequest:
    """Read profile and suite and check every word; raises UsageError before anything costs time."""
    site = load_site(options.site, options.chosen_settings())
    suite, source = load_suite(options.suite or site.defaults.suite)
    own = own_workloads(suite, source.name)
    packed_together(own.values())  # refuses two contents of one version
    workloads = suite.resolve(source, reps=options.reps, timeout_s=site.limits.workload, own=own)
    options.check()
    request = build_request(options, site, suite.name, workloads, options.chosen_variants(site.defaults.variants))
    request = dataclasses.replace(request, own=list(own.values()))
    chooses = suite.first_pass and options.reps is None
    margin = suite.margin if options.margin is None else options.chosen_margin()
    VerdictSettings(margin=Margin(site.defaults.margin if margin is None else margin))  # refuses what can't be judged
    return dataclasses.replace(request, margin=margin, chooses_repetitions=chooses)


def build_request(
    options: CampaignOptions, site: Site, suite: str, workloads: list[WorkloadSpec], variants: list[Variant]
) -> CampaignRequest:
    """A request for these workloads and variants, with the site's defaults for missing options; raises UsageError."""
    if not options.allow_unknown_env:
        check_variables(site, variants)
    budget_s = options.chosen_budget()
    blocks = options.chosen_blocks()
    if budget_s is None and blocks is None:
        budget_s = site.defaults.budget
    return CampaignRequest(
        options=options,
        outputs=options.outputs or expanded(site.paths.outputs, "paths.outputs", site),
        campaign="planned",
        created_at="",
        gpubench=__version__,
        site=site,
        suite=suite,
        workloads=workloads,
        variants=variants,
        images={},
        nodes=options.chosen_nodes(site.defaults.nodes),
        blocks=blocks or (site.defaults.blocks if options.budget is None else MOST_BLOCKS),
        seed=0,
        protocol=options.protocol or site.protocol,
        device=site.device,
        machine_cores=node_cores(site),
        machine_memory=node_memory(site),
        workers=options.chosen_workers(site.layout.workers),
        margin=options.chosen_margin(),
        summary=options.chosen_summary(),
        power=options.power,
        budget_s=budget_s,
        budget_firm=options.budget is not None,
        known_issues=known_issues(site),
    )


def check_plan(request: CampaignRequest) -> None:
    """Raise where no plan can be made of it (PlanRefusedError) or written (UsageError), before anything costs time."""
    require_place(request.outputs)
    make_plan(resolve_auto(request))


def memory_of_a_worker(request: CampaignRequest) -> int:
    """Bytes that each worker of the largest planned cluster has for its data; 0: unknown."""
    return worker_memory(resolve_auto(request), max(request.workers))


def plan_campaign(request: CampaignRequest, *, out: Path | None = None, quiet: bool = False) -> Campaign:
    """Build what images are missing, plan, and write plan, manifests and scripts into a new campaign directory.

    ``out`` is that directory, by default a new one below the outputs.

    Raises:
        UsageError: ``out`` holds a campaign, or is a file; the site charges an account, and none is named.
        MissingToolError: the campaign needs GPUs of this machine, and it has no driver for them.
        PlanRefusedError: the plan can't be run; without ``out`` also if this machine submits the jobs and an image is
            missing.
    """
    now = dt.datetime.now(dt.UTC)
    if out is not None and (out / PLAN_FILE).exists():
        raise UsageError(f"{out} already holds a campaign", then="name another directory")
    require_place(out or request.outputs)
    complete = functools.partial(_complete_request, request, now, _seed(request))
    make_plan(complete({}))  # refused plans leave no image built and no directory behind
    if out is None:
        if can_submit(request.site):
            require_account(request.site)
        require_own_gpus(request.site, max(request.workers))
    built = obtain_images(request.site, [variant.ucx for variant in request.variants], request.options, quiet=quiet)
    final = complete(built)
    if out is None and can_submit(request.site):  # what the queue can't run leaves no campaign behind
        planned_images(Campaign(request.outputs, make_plan(final)))
    directory = out or create_campaign(request.outputs, request.site.name, request.suite, now)
    plan = make_plan(dataclasses.replace(final, campaign=directory.resolve().name))
    write_node_half(directory, request.own)
    for image, manifest in filter(None, built.values()):
        Campaign(directory, plan).write_manifest(image.manifest, manifest)
    campaign = Campaign.begin(directory, plan)  # last of what can't be made again: what has a plan lacks scripts only
    write_scripts(campaign)
    return campaign


def foreseen_campaign(request: CampaignRequest) -> Campaign:
    """As ``plan_campaign`` would plan it now, with the images that are there; nothing is built or written."""
    there = obtain_images(
        request.site, [variant.ucx for variant in request.variants], request.options, look_only=True, quiet=True
    )
    complete = _complete_request(request, dt.datetime.now(dt.UTC), _seed(request), there)
    name = f"{request.site.name}-{request.suite}"
    if makes_first_pass(request):
        change = "bench begins with a first pass, which chooses other blocks and repetitions, to fill the budget"
        complete = dataclasses.replace(complete, repetitions=[change])
    return Campaign(request.outputs / name, make_plan(dataclasses.replace(complete, campaign=name)))


def makes_first_pass(request: CampaignRequest) -> bool:
    """Whether ``bench`` first runs the baseline once, to choose repetitions and blocks that fill the budget.

    Not where a queue starts the jobs, without a budget, and over several node counts or layouts, whose runs take
    different times.
    """
    has_budget, one_place = request.budget_s is not None, len(request.nodes) * len(request.workers) == 1
    return request.chooses_repetitions and request.site.scheduler in LOCAL and has_budget and one_place


def _seed(request: CampaignRequest) -> int:
    return random.SystemRandom().randrange(SEEDS) if request.options.seed is None else request.options.seed


def _complete_request(
    request: CampaignRequest, now: dt.datetime, seed: int, images: Mapping[str, Found | None]
) -> Request:
    manifests = {spec: found[1] for spec, found in images.items() if found}
    check_packages(request.workloads, manifests)
    resolved = resolve_auto(request, manifests)
    check_graphs(resolved.site, resolved.site.device, [item.name for item in request.workloads], manifests)
    history = find_history(request.outputs, request.site.name, _shape(resolved))
    if first := request.tried:
        reps = {item.params_id: item.reps for item in request.workloads}
        run_s = first.run_s(reps)
        earlier = _as_often(history.pilot if history else (), reps)
        history = History(first.campaign, run_s, 1, earlier, source="what the first pass took")
    found: dict[str, Image | None] = {spec: found[0] if found else None for spec, found in images.items()}
    if not request.options.allow_unknown_env:
        check_listed(request.variants, found)
    return dataclasses.replace(resolved, created_at=now.isoformat(), seed=seed, history=history, images=found)


def _as_often(pilot: Sequence[ComparisonInput], reps: Mapping[str, int]) -> list[ComparisonInput]:
    """The comparisons whose runs had about as many repetitions: runs with fewer repetitions scatter more."""
    kept = []
    for one in pilot:
        planned, counts = reps.get(str(one.key["params_id"]), 0), [len(run.wall_s) for run in one.runs if run.wall_s]
        if planned and counts and 1 / ALIKE <= planned / statistics.median(counts) <= ALIKE:
            kept.append(one)
    return kept


def render_campaign(request: CampaignRequest, directory: Path) -> Campaign:
    """Plan and render into ``directory`` with every image unresolved; the same words give the same bytes.

    So the name, the time and the seed come from the words: ``<site>-<suite>[-<date>]``, the date's midnight UTC (the
    epoch without one), a hash. No history is looked at, and nothing outside this process is asked; where the site's
    nodes are this machine, its cores and memory count too.

    Raises:
        UsageError: ``directory`` holds another plan.
    """
    request = resolve_auto(request)
    options = request.options
    words = {key: value for key, value in dataclasses.asdict(options).items() if key != "outputs"}
    words["blocks"] = options.chosen_blocks()
    date = options.chosen_date()
    at = dt.datetime.strptime(date or EPOCH, "%Y%m%d").replace(tzinfo=dt.UTC)
    complete = dataclasses.replace(
        request,
        campaign="-".join(filter(None, (request.site.name, request.suite, date))),
        created_at=at.isoformat(),
        seed=int(content_id(words), 16) % SEEDS if options.seed is None else options.seed,
    )
    plan = make_plan(complete)
    there = Campaign.open(directory) if (directory / PLAN_FILE).exists() else None
    if there is not None and there.whole_plan != plan:
        raise UsageError(f"{directory} already holds another campaign", then="name another directory")
    if there is None:
        write_node_half(directory, request.own)
    campaign = there or Campaign.begin(directory, plan)
    write_scripts(campaign)
    return campaign


def write_node_half(directory: Path, own: Iterable[OwnWorkload]) -> None:
    """What every process of a run starts from, with the files of the user's own workloads in it."""
    write_atomically(directory / NODE_HALF, pack(resources.node_half() | packed_together(own)))


def write_scripts(campaign: Campaign) -> None:
    """Render every job of the campaign; the node half is packed once, and stays what it is when jobs are added."""
    node_half = campaign.node_half.read_bytes() if campaign.node_half.exists() else pack(resources.node_half())
    jobs = rendered(campaign.plan, campaign.jobs, resources.job_templates(), node_half)
    for files in itertools.chain([{campaign.node_half.name: node_half}], jobs):
        for name, data in files.items():
            path = campaign.directory / name
            if not path.exists() or path.read_bytes() != data:
                write_atomically(path, data)


def resolve_auto(request: CampaignRequest, manifests: Mapping[str, Mapping[str, Any]] | None = None) -> CampaignRequest:
    """The profile with ``auto`` resolved; ``manifests`` of the images that are known, by UCX spec."""
    site = with_waiting(request.site, request.protocol, manifests or {})
    request = dataclasses.replace(request, site=site)
    site, not_interleaved = resolve_arrangement(request)
    return dataclasses.replace(request, site=site, not_interleaved=not_interleaved)


def node_cores(site: Site) -> int:
    """Cores of one node; 0 if unknown."""
    if site.node.cores or not _is_this_machine(site):
        return site.node.cores
    return len(os.sched_getaffinity(0))


def node_memory(site: Site) -> int:
    """Bytes of one node; 0 if unknown: the memory of a login node says nothing about it."""
    if site.node.memory or not _is_this_machine(site):
        return site.node.memory or 0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _is_this_machine(site: Site) -> bool:
    return site.layout.one_machine or site.scheduler in LOCAL


LOOK_BACK = 5
"""How many of the newest campaigns are examined: the machine may have changed since older ones."""


def find_history(outputs: Path, site: str, shape: dict[str, Any]) -> History | None:
    """The newest campaign of this shape with ``ok`` runs; None where there is none."""
    plans = sorted(outputs.glob(f"*/{PLAN_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in plans[:LOOK_BACK]:
        try:
            campaign = Campaign.open(path.parent)
        except GpubenchError:  # a damaged campaign is no history; whoever opens it by name is told
            continue
        if campaign.plan.site.name == site and _shape(campaign.plan) == shape:
            durations = [
                record_seconds(one.record) for one in account(campaign).outcomes if one.status == "ok" and one.record
            ]
            if durations:
                return History(campaign.plan.campaign, statistics.median(durations), len(durations), _pilot(campaign))
    return None


def _shape(of: CampaignRequest | Plan) -> dict[str, Any]:
    """What runs must have in common for the durations of one to predict those of the other."""
    if isinstance(of, Plan):
        workers, tried = sorted({workers for _, workers in of.places}), bool(of.first_pass)
    else:
        workers, tried = [*of.workers], of.tried is not None
    return {
        "protocol": of.protocol,
        "runtime": of.site.runtime,
        "arrangement": of.site.layout.arrangement,
        "waiting": of.site.layout.waiting,
        "device": of.device,
        "workers_per_node": workers,
        # Where a first pass chose the repetitions, runs take as long with other numbers of them.
        "workloads": sorted((item.params_id, 0 if tried else item.reps, item.warmup) for item in of.workloads),
    }


def _pilot(campaign: Campaign) -> list[ComparisonInput]:
    from gpubench.merge.family import cells, family
    from gpubench.merge.table import merge_directory

    merged = merge_directory(campaign.runs_dir)
    return family(campaign.plan, cells(campaign.plan, account(campaign).outcomes, merged))
