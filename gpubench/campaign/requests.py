"""From the options of a command to the request of a plan."""

import dataclasses
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench import __version__
from gpubench.campaign.option_values import chosen, chosen_settings, chosen_variants
from gpubench.campaign.options import CampaignOptions
from gpubench.images.compatibility import with_waiting
from gpubench.images.variables import check_variables
from gpubench.model.own_workload import packed_together
from gpubench.model.site import Site
from gpubench.model.variant import Variant
from gpubench.node.spec import WorkloadSpec
from gpubench.plan.budget import MOST_BLOCKS
from gpubench.plan.feasibility import resolve_arrangement, worker_memory
from gpubench.plan.request import Request
from gpubench.resources.own_workloads import own_workloads
from gpubench.resources.profiles import expanded, known_issues, load_site, load_suite
from gpubench.schedulers import LOCAL
from gpubench.stats.settings import Margin, VerdictSettings

SEEDS = 2**31
DECIDED = {field.name for field in dataclasses.fields(CampaignOptions)} & {
    field.name for field in dataclasses.fields(Request)
} - {"site", "suite", "variants"}
"""Fields of a request that the option of the same name decides, where it is given."""


def parse_request(options: CampaignOptions) -> Request:
    """Read profile and suite and check every word; raises UsageError before anything costs time."""
    site = load_site(options.site, chosen_settings(options))
    suite, source = load_suite(options.suite or site.defaults.suite)
    own = own_workloads(suite, source.name)
    packed_together(own.values())  # refuses two contents of one version
    workloads = suite.resolve(source, reps=options.reps, timeout_s=site.limits.workload, own=own)
    chosen(options, "date")
    request = build_request(
        options,
        site,
        suite.name,
        workloads,
        chosen_variants(options, site.defaults.variants),
        margin=site.defaults.margin if suite.margin is None else suite.margin,
        own=list(own.values()),
        chooses_repetitions=suite.first_pass and options.reps is None,
    )
    VerdictSettings(margin=Margin(request.margin))  # refuses what can't be judged
    return request


def build_request(
    options: CampaignOptions,
    site: Site,
    suite: str,
    workloads: list[WorkloadSpec],
    variants: list[Variant],
    **defaults: Any,
) -> Request:
    """A request for these workloads and variants; raises UsageError.

    For options that were not given, it has ``defaults`` by the names of its fields, else those of the site.
    """
    if not options.allow_unknown_env:
        check_variables(site, variants)
    budget_s = chosen(options, "budget")
    if budget_s is None and options.blocks is None:
        budget_s = site.defaults.budget
    given = {name: value for name in DECIDED if (value := chosen(options, name)) is not None}
    decided = {
        "blocks": site.defaults.blocks if options.budget is None else MOST_BLOCKS,
        "nodes": site.defaults.nodes,
        "workers": [site.layout.workers],
        "seed": random.SystemRandom().randrange(SEEDS),
        "protocol": site.protocol,
        "margin": site.defaults.margin,
        **defaults,
        **given,
    }
    return Request(
        **decided,
        gpubench=__version__,
        site=site,
        suite=suite,
        workloads=workloads,
        variants=variants,
        machine_cores=node_cores(site),
        machine_memory=node_memory(site),
        budget_s=budget_s,
        budget_firm=options.budget is not None,
        known_issues=known_issues(site),
    )


def outputs_of(options: CampaignOptions, site: Site) -> Path:
    """Where campaigns live; raises UsageError for a variable of the profile that isn't set."""
    return options.outputs or expanded(site.paths.outputs, "paths.outputs", site)


def resolve_auto(request: Request, manifests: Mapping[str, Mapping[str, Any]] | None = None) -> Request:
    """The profile with ``auto`` resolved; ``manifests`` of the images that are known, by UCX spec."""
    site = with_waiting(request.site, request.protocol, manifests or {})
    site, not_interleaved = resolve_arrangement(dataclasses.replace(request, site=site))
    return dataclasses.replace(request, site=site, not_interleaved=not_interleaved)


def memory_of_a_worker(request: Request) -> int:
    """Bytes that each worker of the largest planned cluster has for its data; 0: unknown."""
    return worker_memory(resolve_auto(request), max(request.workers))


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
