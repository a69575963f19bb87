"""A campaign as planned: on disk with its scripts, as it would be planned now, or rendered to be read."""

import dataclasses
import datetime as dt
import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpubench import resources
from gpubench.campaign.option_values import parsed
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.own_gpus import require_own_gpus
from gpubench.campaign.past_runs import with_history
from gpubench.campaign.preflight import can_submit, require_account, require_built, require_built_or_queue
from gpubench.campaign.requests import SEEDS, parse_request
from gpubench.errors import UsageError
from gpubench.files import write_atomically
from gpubench.images.compatibility import with_waiting
from gpubench.images.kinds.base import Found
from gpubench.images.obtain import obtain_images
from gpubench.images.variables import check_listed
from gpubench.model.image import Image
from gpubench.model.own_workload import OwnWorkload, packed_together
from gpubench.node.spec.plain import content_id
from gpubench.plan.block_pods import check_images_of_block_pods
from gpubench.plan.make import make_plan
from gpubench.plan.placement import check_graphs
from gpubench.plan.request import Request
from gpubench.plan.request_checks import plan_clusters
from gpubench.plan.scope import plan_scope
from gpubench.render.job import job_file, rendered
from gpubench.render.node_half import NODE_HALF, pack
from gpubench.resources.profiles import outputs_of
from gpubench.schedulers import LOCAL
from gpubench.store.campaign import PLAN_FILE, Campaign, create_campaign, require_place

EPOCH = "19700101"

Images = Mapping[str, Found | None]
"""By UCX spec; None where there is none yet."""


def prepare_request(
    request: Request, options: CampaignOptions, *, out: Path | None = None, by_history: bool = True
) -> tuple[Request, Images]:
    """The request with ``auto`` resolved, and its images, of which those that are missing are built.

    A request that is refused leaves no image built and no directory behind.

    Args:
        out: as for ``plan_campaign``.
        by_history: whether an earlier campaign tells how long a run takes; a first pass is not foretold by one.

    Raises:
        UsageError: ``out`` holds a campaign, or is a file; the site charges an account, and none is named.
        MissingToolError: the campaign needs GPUs of this machine, and it has no driver for them; or it needs a queue
            and images, of which none is here.
        PlanRefusedError: the plan can't be run, or an image is missing: with ``out``, and where this machine submits
            the jobs.
    """
    site = request.site
    if out is not None and (out / PLAN_FILE).exists():
        raise UsageError(f"{out} already holds a campaign", then="name another directory")
    outputs = outputs_of(site, options.outputs)
    require_place(out or outputs)
    waiting = with_waiting(site, request.protocol, {})
    foreseen, clusters = plan_clusters(dataclasses.replace(request, site=waiting))
    plan_scope(with_history(foreseen, outputs) if by_history else foreseen, clusters)
    if out is None:
        if can_submit(site):
            require_account(site)
        require_own_gpus(site, max(request.workers))
    images = obtain_images(site, [item.ucx for item in request.variants], date=options.date, base=options.base)
    request = _for_images(request, options, images)
    missing = {item.label: item.ucx for item in request.variants if images[item.ucx] is None}
    if out is not None or can_submit(site):  # what nobody can run leaves no campaign behind
        require_built(site, missing)
    require_built_or_queue(site, missing)
    return plan_clusters(request)[0], images


def _for_images(request: Request, options: CampaignOptions, images: Images) -> Request:
    """The request whose processes can wait as these images do; raises PlanRefusedError, UsageError."""
    manifests = {spec: entry[1] for spec, entry in images.items() if entry}
    check_images_of_block_pods(request.workloads, manifests)
    request = dataclasses.replace(request, site=with_waiting(request.site, request.protocol, manifests))
    check_graphs(request.site, request.device, [item.name for item in request.workloads], manifests)
    if not options.allow_unknown_env:
        check_listed(request.variants, _only_images(images))
    return request


def _only_images(images: Images) -> dict[str, Image]:
    return {spec: entry[0] for spec, entry in images.items() if entry}


def plan_campaign(request: Request, options: CampaignOptions, images: Images, *, out: Path | None = None) -> Campaign:
    """Plan, and write plan, manifests and scripts into a new campaign directory.

    Args:
        request: as ``prepare_request`` gives it, with its ``images``.
        out: the directory; None: a new one below the outputs.

    Raises:
        PlanRefusedError: the plan can't be run.
    """
    now, outputs = dt.datetime.now(dt.UTC), outputs_of(request.site, options.outputs)
    request, clusters = plan_clusters(request)
    request = with_history(request, outputs)
    scope = plan_scope(request, clusters)
    directory = out or create_campaign(outputs, request.site.name, request.suite, now)
    name = directory.resolve().name
    plan = make_plan(request, scope, campaign=name, created_at=now.isoformat(), images=_only_images(images))
    write_node_half(directory, request.own)
    for image, manifest in filter(None, images.values()):
        Campaign(directory, plan).write_manifest(image.manifest, manifest)
    campaign = Campaign.begin(directory, plan)  # last of what can't be made again: what has a plan lacks scripts only
    write_scripts(campaign)
    return campaign


def foreseen_campaign(options: CampaignOptions) -> Campaign:
    """As ``plan_campaign`` would plan it now, with the images that are there; nothing is built or written.

    Where a variable in the path of the outputs isn't set here, no earlier campaign is looked at.
    """
    request = parse_request(options)
    site = request.site
    outputs = options.outputs or Path(os.path.expandvars(site.paths.outputs)).expanduser()
    specs = [item.ucx for item in request.variants]
    images = obtain_images(site, specs, date=options.date, base=options.base, look_only=True)
    if makes_first_pass(request):
        change = "bench begins with a first pass, which chooses other blocks and repetitions, to fill the budget"
        request = dataclasses.replace(request, repetitions=[change])
    request, clusters = plan_clusters(_for_images(request, options, images))
    request = with_history(request, outputs)
    scope = plan_scope(request, clusters)
    name, now = f"{site.name}-{request.suite}", dt.datetime.now(dt.UTC)
    plan = make_plan(request, scope, campaign=name, created_at=now.isoformat(), images=_only_images(images))
    return Campaign(outputs / name, plan)


def makes_first_pass(request: Request) -> bool:
    """Whether ``bench`` first runs the baseline once, to choose repetitions and blocks that fill the budget.

    Not where a queue starts the jobs, without a budget, and over several node counts or layouts, whose runs take
    different times.
    """
    has_budget, one_place = request.budget_s is not None, len(request.nodes) * len(request.workers) == 1
    return request.chooses_repetitions and request.site.scheduler in LOCAL and has_budget and one_place


def render_campaign(options: CampaignOptions, directory: Path) -> Campaign:
    """Plan and render into ``directory`` with every image unresolved; the same words give the same bytes.

    Without any option, the scripts of the plan in ``directory`` are written again, where it has one.

    So the name, the time and the seed come from the words: ``<site>-<suite>[-<date>]``, the date's midnight UTC (the
    epoch without one), a hash. No history is looked at, and nothing outside this process is asked; where the site's
    nodes are this machine, its cores and memory count too.

    Raises:
        UsageError: ``directory`` holds another plan.
    """
    if options == CampaignOptions() and (directory.is_file() or (directory / PLAN_FILE).exists()):
        campaign = Campaign.open(directory)
        write_scripts(campaign)
        return campaign
    request = parse_request(options)
    if options.seed is None:
        content = {key: value for key, value in dataclasses.asdict(options).items() if key != "outputs"}
        content["blocks"] = parsed("blocks", options.blocks)
        request = dataclasses.replace(request, seed=int(content_id(content), 16) % SEEDS)
    site = with_waiting(request.site, request.protocol, {})
    request, clusters = plan_clusters(dataclasses.replace(request, site=site))
    plan = make_plan(
        request,
        plan_scope(request, clusters),
        campaign="-".join(filter(None, (request.site.name, request.suite, options.date))),
        created_at=dt.datetime.strptime(options.date or EPOCH, "%Y%m%d").replace(tzinfo=dt.UTC).isoformat(),
    )
    if not (directory / PLAN_FILE).exists():
        write_node_half(directory, request.own)
        campaign = Campaign.begin(directory, plan)
    elif (campaign := Campaign.open(directory)).whole_plan != plan:
        raise UsageError(f"{directory} already holds another campaign", then="name another directory")
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


def script_files(campaign: Campaign) -> list[Path]:
    """What starts each job: its script, or the object of a cluster."""
    name = job_file(campaign.plan.site.scheduler, resources.job_templates())
    return [campaign.job_dir(job.job) / name for job in campaign.jobs]
