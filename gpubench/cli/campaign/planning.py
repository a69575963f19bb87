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
class Wanted(Request):
    """The user's options, read and checked; nothing is built or written yet. Planning adds name, time, seed and images.

    ``tried`` is the first pass that the repetitions follow from, where one was made.
    """

    asked: CampaignOptions
    outputs: Path
    chooses_repetitions: bool = False
    tried: FirstPass | None = None


def read_wishes(asked: CampaignOptions) -> Wanted:
    """Read profile and suite and check every word; raises UsageError before anything costs time."""
    site = load_site(asked.site, asked.chosen_settings())
    suite, source = load_suite(asked.suite or site.defaults.suite)
    own = own_workloads(suite, source.name)
    packed_together(own.values())  # refuses two contents of one version
    workloads = suite.resolve(source, reps=asked.reps, timeout_s=site.limits.workload, own=own)
    asked.check()
    wanted = want(asked, site, suite.name, workloads, asked.chosen_variants(site.defaults.variants))
    wanted = dataclasses.replace(wanted, own=list(own.values()))
    chooses = suite.first_pass and asked.reps is None
    margin = suite.margin if asked.margin is None else asked.chosen_margin()
    VerdictSettings(margin=Margin(site.defaults.margin if margin is None else margin))  # refuses what can't be judged
    return dataclasses.replace(wanted, margin=margin, chooses_repetitions=chooses)


def want(
    asked: CampaignOptions, site: Site, suite: str, workloads: list[WorkloadSpec], variants: list[Variant]
) -> Wanted:
    """What is wanted of workloads and variants that are known already; raises UsageError."""
    if not asked.allow_unknown_env:
        check_variables(site, variants)
    budget_s = asked.chosen_budget()
    blocks = asked.chosen_blocks()
    if budget_s is None and blocks is None:
        budget_s = site.defaults.budget
    return Wanted(
        asked=asked,
        outputs=asked.outputs or expanded(site.paths.outputs, "paths.outputs", site),
        campaign="planned",
        created_at="",
        gpubench=__version__,
        site=site,
        suite=suite,
        workloads=workloads,
        variants=variants,
        images={},
        nodes=asked.chosen_nodes(site.defaults.nodes),
        blocks=blocks or (site.defaults.blocks if asked.budget is None else MOST_BLOCKS),
        seed=0,
        protocol=asked.protocol or site.protocol,
        device=site.device,
        machine_cores=node_cores(site),
        machine_memory=node_memory(site),
        workers=asked.chosen_workers(site.layout.workers),
        margin=asked.chosen_margin(),
        summary=asked.chosen_summary(),
        power=asked.power,
        budget_s=budget_s,
        budget_firm=asked.budget is not None,
        known_issues=known_issues(site),
    )


def check_plan(wanted: Wanted) -> None:
    """Raise where no plan can be made of it (PlanRefusedError) or written (UsageError), before anything costs time."""
    require_place(wanted.outputs)
    make_plan(settle(wanted))


def memory_of_a_worker(wanted: Wanted) -> int:
    """Bytes that each worker of the largest planned cluster has for its data; 0: unknown."""
    return worker_memory(settle(wanted), max(wanted.workers))


def plan_campaign(wanted: Wanted, *, out: Path | None = None, quiet: bool = False) -> Campaign:
    """Build what images are missing, plan, and write plan, manifests and scripts into a new campaign directory.

    ``out`` is that directory, by default a new one below the outputs.

    Raises:
        UsageError: ``out`` holds a campaign, or is a file; the site charges an account, and none is named.
        MissingToolError: GPUs of this machine are wanted, and it has no driver for them.
        PlanRefusedError: the plan can't be run; without ``out`` also if this machine submits the jobs and an image is
            missing.
    """
    now = dt.datetime.now(dt.UTC)
    if out is not None and (out / PLAN_FILE).exists():
        raise UsageError(f"{out} already holds a campaign", then="name another directory")
    require_place(out or wanted.outputs)
    request = functools.partial(_request, wanted, now, _seed(wanted))
    make_plan(request({}))  # refused plans leave no image built and no directory behind
    if out is None:
        if can_submit(wanted.site):
            require_account(wanted.site)
        require_own_gpus(wanted.site, max(wanted.workers))
    built = obtain_images(wanted.site, [variant.ucx for variant in wanted.variants], wanted.asked, quiet=quiet)
    final = request(built)
    if out is None and can_submit(wanted.site):  # what the queue can't run leaves no campaign behind
        planned_images(Campaign(wanted.outputs, make_plan(final)))
    directory = out or create_campaign(wanted.outputs, wanted.site.name, wanted.suite, now)
    plan = make_plan(dataclasses.replace(final, campaign=directory.resolve().name))
    write_node_half(directory, wanted.own)
    for image, manifest in filter(None, built.values()):
        Campaign(directory, plan).write_manifest(image.manifest, manifest)
    campaign = Campaign.begin(directory, plan)  # last of what can't be made again: what has a plan lacks scripts only
    write_scripts(campaign)
    return campaign


def foreseen_campaign(wanted: Wanted) -> Campaign:
    """As ``plan_campaign`` would plan it now, with the images that are there; nothing is built or written."""
    there = obtain_images(
        wanted.site, [variant.ucx for variant in wanted.variants], wanted.asked, look_only=True, quiet=True
    )
    request = _request(wanted, dt.datetime.now(dt.UTC), _seed(wanted), there)
    name = f"{wanted.site.name}-{wanted.suite}"
    if makes_first_pass(wanted):
        change = "bench begins with a first pass, which chooses other blocks and repetitions, to fill the budget"
        request = dataclasses.replace(request, repetitions=[change])
    return Campaign(wanted.outputs / name, make_plan(dataclasses.replace(request, campaign=name)))


def makes_first_pass(wanted: Wanted) -> bool:
    """Whether ``bench`` first runs the baseline once, to choose repetitions and blocks that fill the budget.

    Not where a queue starts the jobs, without a budget, and over several node counts or layouts, whose runs take
    different times.
    """
    one_place = len(wanted.nodes) * len(wanted.workers) == 1
    return wanted.chooses_repetitions and wanted.site.scheduler in LOCAL and wanted.budget_s is not None and one_place


def _seed(wanted: Wanted) -> int:
    return random.SystemRandom().randrange(SEEDS) if wanted.asked.seed is None else wanted.asked.seed


def _request(wanted: Wanted, now: dt.datetime, seed: int, images: Mapping[str, Found | None]) -> Request:
    manifests = {spec: found[1] for spec, found in images.items() if found}
    check_packages(wanted.workloads, manifests)
    settled = settle(wanted, manifests)
    check_graphs(settled.site, settled.site.device, [item.name for item in wanted.workloads], manifests)
    history = find_history(wanted.outputs, wanted.site.name, _shape(settled))
    if first := wanted.tried:
        reps = {item.params_id: item.reps for item in wanted.workloads}
        run_s = first.run_s(reps)
        earlier = _as_often(history.pilot if history else (), reps)
        history = History(first.campaign, run_s, 1, earlier, source="what the first pass took")
    found: dict[str, Image | None] = {spec: found[0] if found else None for spec, found in images.items()}
    if not wanted.asked.allow_unknown_env:
        check_listed(wanted.variants, found)
    return dataclasses.replace(settled, created_at=now.isoformat(), seed=seed, history=history, images=found)


def _as_often(pilot: Sequence[ComparisonInput], reps: Mapping[str, int]) -> list[ComparisonInput]:
    """The comparisons whose runs had about as many repetitions: runs with fewer repetitions scatter more."""
    kept = []
    for one in pilot:
        planned, counts = reps.get(str(one.key["params_id"]), 0), [len(run.wall_s) for run in one.runs if run.wall_s]
        if planned and counts and 1 / ALIKE <= planned / statistics.median(counts) <= ALIKE:
            kept.append(one)
    return kept


def render_campaign(wanted: Wanted, directory: Path) -> Campaign:
    """Plan and render into ``directory`` with every image unresolved; the same words give the same bytes.

    So the name, the time and the seed come from the words: ``<site>-<suite>[-<date>]``, the date's midnight UTC (the
    epoch without one), a hash. No history is looked at, and nothing outside this process is asked; where the site's
    nodes are this machine, its cores and memory count too.

    Raises:
        UsageError: ``directory`` holds another plan.
    """
    wanted = settle(wanted)
    asked = wanted.asked
    words = {key: value for key, value in dataclasses.asdict(asked).items() if key != "outputs"}
    words["blocks"] = asked.chosen_blocks()
    date = asked.chosen_date()
    at = dt.datetime.strptime(date or EPOCH, "%Y%m%d").replace(tzinfo=dt.UTC)
    request = dataclasses.replace(
        wanted,
        campaign="-".join(filter(None, (wanted.site.name, wanted.suite, date))),
        created_at=at.isoformat(),
        seed=int(content_id(words), 16) % SEEDS if asked.seed is None else asked.seed,
    )
    plan = make_plan(request)
    there = Campaign.open(directory) if (directory / PLAN_FILE).exists() else None
    if there is not None and there.whole_plan != plan:
        raise UsageError(f"{directory} already holds another campaign", then="name another directory")
    if there is None:
        write_node_half(directory, wanted.own)
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


def settle(wanted: Wanted, manifests: Mapping[str, Mapping[str, Any]] | None = None) -> Wanted:
    """The profile with ``auto`` resolved; ``manifests`` of the images that are known, by UCX spec."""
    site = with_waiting(wanted.site, wanted.protocol, manifests or {})
    wanted = dataclasses.replace(wanted, site=site)
    site, not_interleaved = resolve_arrangement(wanted)
    return dataclasses.replace(wanted, site=site, not_interleaved=not_interleaved)


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


def _shape(of: Wanted | Plan) -> dict[str, Any]:
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
