"""From the user's words to a planned campaign on disk."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import random
from pathlib import Path
from typing import Any

from gpubench import __version__, resources
from gpubench.cli.options import Asked
from gpubench.cli.steps.history import find_history
from gpubench.cli.steps.images import obtain_images
from gpubench.cli.steps.profiles import load_site, load_suite
from gpubench.files import write_atomically
from gpubench.model.image import Image, Variant
from gpubench.model.site import Site
from gpubench.plan import Request, make_plan
from gpubench.render import pack, render_jobs
from gpubench.spec import WorkloadSpec
from gpubench.store.campaign import Campaign
from gpubench.store.outputs import create_campaign


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The user's words, read and checked; nothing is built or written yet."""

    asked: Asked
    site: Site
    suite: str
    workloads: list[WorkloadSpec]
    variants: list[Variant]
    nodes: list[int]
    outputs: Path


def read_wishes(asked: Asked) -> Wanted:
    """Read profile and suite and check every word; raises UsageError before anything costs time."""
    site = load_site(asked.site, asked.chosen_settings())
    suite, source = load_suite(asked.suite or site.defaults.suite)
    workloads = suite.resolve(source, reps=asked.reps, timeout_s=site.limits.workload)
    asked.check()
    return Wanted(
        asked=asked,
        site=site,
        suite=suite.name,
        workloads=workloads,
        variants=asked.chosen_variants(site.defaults.variants),
        nodes=asked.chosen_nodes(site.defaults.nodes),
        outputs=asked.outputs or Path(os.path.expandvars(site.paths.outputs)).expanduser(),
    )


def plan_campaign(wanted: Wanted, *, quiet: bool = False) -> Campaign:
    """Build what images are missing, plan, and write plan, manifests and scripts into a new campaign directory."""
    now = dt.datetime.now(dt.UTC)
    request = _request(wanted, now, campaign="planned")
    make_plan(request)  # refused plans leave no image built and no directory behind
    built = obtain_images(wanted.site, [variant.ucx for variant in wanted.variants], wanted.asked, quiet=quiet)
    directory = create_campaign(wanted.outputs, wanted.site.name, wanted.suite, now)
    images: dict[str, Image | None] = {spec: found[0] if found else None for spec, found in built.items()}
    plan = make_plan(dataclasses.replace(request, campaign=directory.name, images=images))
    campaign = Campaign.begin(directory, plan)
    for image, manifest in filter(None, built.values()):
        campaign.write_manifest(image.manifest, manifest)
    write_scripts(campaign)
    return campaign


def write_scripts(campaign: Campaign) -> None:
    """Render every job of the campaign; the node half is packed once, and stays what it is when jobs are added."""
    node_half = campaign.node_half.read_bytes() if campaign.node_half.exists() else pack(resources.node_half())
    files = render_jobs(campaign.plan, campaign.jobs, resources.texts("templates", "**/*.sh.j2"), node_half)
    for name, data in {campaign.node_half.name: node_half, **files}.items():
        path = campaign.directory / name
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, data)


def _request(wanted: Wanted, now: dt.datetime, campaign: str) -> Request:
    asked, site = wanted.asked, wanted.site
    protocol = asked.protocol or site.protocol
    budget = asked.chosen_budget()
    habit = site.defaults.budget if asked.blocks is None else None
    return Request(
        campaign=campaign,
        created_at=now.isoformat(),
        gpubench=__version__,
        site=site,
        suite=wanted.suite,
        workloads=wanted.workloads,
        variants=wanted.variants,
        images={},
        nodes=wanted.nodes,
        blocks=asked.blocks or site.defaults.blocks,
        seed=random.SystemRandom().randrange(2**31) if asked.seed is None else asked.seed,
        protocol=protocol,
        device=site.device,
        machine_cores=os.cpu_count() or 1,
        machine_memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        workers=asked.workers,
        margin=asked.chosen_margin(),
        summary=asked.chosen_summary(),
        max_blocks=asked.max_blocks,
        power=asked.power,
        budget_s=habit if budget is None else budget,
        budget_firm=budget is not None,
        history=find_history(wanted.outputs, site.name, _shape(wanted, protocol)),
    )


def _shape(wanted: Wanted, protocol: str) -> dict[str, Any]:
    """As ``shape_of`` of a plan, before there is one."""
    return {
        "protocol": protocol,
        "runtime": wanted.site.runtime,
        "device": wanted.site.device,
        "workers_per_node": wanted.asked.workers or wanted.site.layout.workers,
        "workloads": sorted((item.params_id, item.reps, item.warmup) for item in wanted.workloads),
    }
