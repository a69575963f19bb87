"""What each variant is, and on which machine: the line below an answer whose names are only labels."""

from collections.abc import Iterator

from gpubench.images.variant_text import variant_text
from gpubench.model.plan import PlannedVariant
from gpubench.model.text import counted
from gpubench.model.variant import ImageSpec
from gpubench.results.judged_campaign import JudgedCampaign

_MOST = 4
"""Variants that have room in a line."""


def compared(inputs: JudgedCampaign) -> str:
    """``old: UCX 1.17.0 · new: UCX 1.19.0 · margin ±3 % · on vm: 2 cores of AMD EPYC, Linux 6.18``."""
    variants = inputs.plan.variants
    parts = [
        " ".join([f"{variant.label}: {variant_text(variant)}", *_unpinned(inputs, variant)])
        for variant in variants[:_MOST]
    ]
    if len(variants) > _MOST:
        parts.append(counted(len(variants) - _MOST, "more variant"))
    return " · ".join([*parts, f"margin ±{inputs.settings.margin.percent}", *_machine(inputs)])


def _unpinned(inputs: JudgedCampaign, variant: PlannedVariant) -> list[str]:
    """``dask==2025.7.0``: what the variant has of the packages that another one names, where its image says it."""
    pins = [ImageSpec.parse(other.ucx).packages for other in inputs.plan.variants]
    names = dict.fromkeys(name for packages in pins for name in packages)
    manifest = inputs.manifests.get(variant.image.manifest, {}) if variant.image else {}
    has = manifest.get("stack", {}).get("packages", {})
    own = ImageSpec.parse(variant.ucx).packages
    return [f"{name}=={has[name]}" for name in names if name in has and name not in own]


def _machine(inputs: JudgedCampaign) -> Iterator[str]:
    """The nodes of the campaign, and what the first of its runs says of the first of them."""
    ok = [outcome for outcome in inputs.outcomes if outcome.status == "ok" and outcome.record]
    hosts = sorted({host for outcome in ok if outcome.record for host in outcome.record.hosts})
    evidence = inputs.evidence[ok[0].run.run] if ok else None
    if not hosts or not evidence or not evidence.by_host:
        return
    node = next(iter(evidence.by_host))
    cores, cpu, gpu, kernel = (evidence.facts.on(node, name) for name in ("cores", "cpu_model", "gpu_model", "kernel"))
    processors = f"{counted(int(cores), 'core')} of {cpu}" if cores.isdecimal() and cpu else ""
    facts = [processors, gpu, f"Linux {kernel}" if kernel else ""]
    where = hosts[0] if len(hosts) == 1 else f"{counted(len(hosts), 'node')} like {node}"
    yield f"on {where}: {', '.join(filter(None, facts))}"
