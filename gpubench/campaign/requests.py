"""From the options of a command to the request of a plan."""

import dataclasses
import random

from gpubench import __version__
from gpubench.campaign.option_values import chosen_settings, chosen_values
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.own_machine import cores_and_memory
from gpubench.errors import UsageError
from gpubench.images.variables import check_variables
from gpubench.model.base import TomlSource, nearest
from gpubench.model.own_workload import packed_together
from gpubench.model.suite import Suite
from gpubench.model.variant import Variant, parse_variants, with_packages
from gpubench.node.spec import WorkloadSpec
from gpubench.plan.budget import MOST_TO_FILL
from gpubench.plan.request import Request
from gpubench.resources.own_workloads import own_workloads
from gpubench.resources.profiles import known_issues, load_site, load_suite
from gpubench.stats.margin import Margin
from gpubench.stats.settings import VerdictSettings

SEEDS = 2**31
DECIDED = {field.name for field in dataclasses.fields(CampaignOptions)} & {
    field.name for field in dataclasses.fields(Request)
} - {"site", "suite", "variants", "workloads"}
"""Fields of a request that the option of the same name decides, where it is given."""


def parse_request(
    options: CampaignOptions, own_suite: tuple[Suite, TomlSource] | None = None, alone: Variant | None = None
) -> Request:
    """Read profile and suite and check every word; raises UsageError before anything costs time.

    Args:
        own_suite: in place of the suite that the options name.
        alone: the only variant, in place of those that the options name.
    """
    values, settings = chosen_values(options), chosen_settings(options)
    site = load_site(options.site, settings)
    suite, source = own_suite or load_suite(options.suite or site.defaults.suite)
    issues = known_issues(site)
    own = own_workloads(suite, source.name)
    packed_together(own.values())  # refuses two contents of one version
    workloads = suite.resolve(source, reps=options.reps, timeout_s=site.limits.workload, own=own)
    workloads = _chosen(workloads, values.get("workloads"), suite.name)
    versions = values.get("variants", values.get("ucx", site.defaults.variants))
    variants = [alone] if alone else with_packages(parse_variants(versions), options.packages or [])
    if not values["allow_unknown_env"]:
        check_variables(site, variants)
    decided = {
        "blocks": MOST_TO_FILL if "budget" in values else site.defaults.blocks,
        "nodes": site.defaults.nodes,
        "workers": [site.layout.workers],
        "seed": random.SystemRandom().randrange(SEEDS),
        "protocol": site.protocol,
        "margin": site.defaults.margin if suite.margin is None else suite.margin,
        **{name: values[name] for name in DECIDED & values.keys()},
    }
    cores, memory = cores_and_memory(site)
    request = Request(
        **decided,
        gpubench=__version__,
        site=site,
        suite=suite.name,
        workloads=workloads,
        variants=variants,
        known_issues=issues,
        own=list(own.values()),
        chooses_repetitions=suite.begins_with_first_pass and options.reps is None,
        machine_cores=cores,
        machine_memory=memory,
        budget_s=values.get("budget", None if "blocks" in values else site.defaults.budget),
        budget_firm="budget" in values,
    )
    VerdictSettings(margin=Margin(request.margin))  # refuses what can't be judged
    return request


def _chosen(workloads: list[WorkloadSpec], names: list[str] | None, suite: str) -> list[WorkloadSpec]:
    if names is None:
        return workloads
    held = list(dict.fromkeys(item.name for item in workloads))
    if not names:
        raise UsageError("--workloads names none", then=f"suite {suite} has {', '.join(held)}")
    if unknown := [name for name in names if name not in held]:
        raise UsageError(
            f"suite {suite} has no workload '{unknown[0]}'{nearest(unknown[0], held)}", then=f"it has {', '.join(held)}"
        )
    return [item for item in workloads if item.name in names]
