"""What each variant is, and on which machine: the line below an answer whose names are only labels."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpubench.campaign.plan_lines import variant_text
from gpubench.model.text import counted
from gpubench.results.judged_campaign import JudgedCampaign

_MOST = 4
"""Variants that have room in a line."""


def compared(inputs: JudgedCampaign) -> str:
    """``old: UCX 1.17.0 · new: UCX 1.19.0 · margin ±3 % · on vm: 2 cores of AMD EPYC, Linux 6.18``."""
    variants = inputs.plan.variants
    parts = [f"{variant.label}: {variant_text(variant)}" for variant in variants[:_MOST]]
    if len(variants) > _MOST:
        parts.append(f"{len(variants) - _MOST} more variants")
    return " · ".join([*parts, f"margin ±{inputs.settings.margin.percent}", *_machine(inputs)])


def _machine(inputs: JudgedCampaign) -> Iterator[str]:
    """The nodes of the campaign, and what the first of its runs says of the first of them."""
    ok = [outcome for outcome in inputs.outcomes if outcome.status == "ok" and outcome.record]
    hosts = sorted({host for outcome in ok if outcome.record for host in outcome.record.hosts})
    nodes: list[Mapping[str, Any]] = ok[0].provenance.get("nodes") or [] if ok else []
    if not hosts or not nodes:
        return
    node = nodes[0]
    cores, cpu = node.get("cores"), node.get("cpu_model")
    gpu, kernel = node.get("gpu_model"), node.get("kernel")
    facts = [f"{counted(cores, 'core')} of {cpu}" if cores and cpu else "", gpu, f"Linux {kernel}" if kernel else ""]
    where = hosts[0] if len(hosts) == 1 else f"{counted(len(hosts), 'node')} like {node.get('host', hosts[0])}"
    yield f"on {where}: {', '.join(filter(None, facts))}"
