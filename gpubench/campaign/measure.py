"""One workload on a cluster of ours, as a campaign of one block and one variant."""

import dataclasses
import logging
import os
import re
from typing import Any

from gpubench.campaign import lifecycle
from gpubench.campaign.measure_result import measured
from gpubench.campaign.observer import Observe, unobserved
from gpubench.campaign.option_values import chosen_settings
from gpubench.campaign.options import CampaignOptions, MeasureOptions
from gpubench.campaign.own_gpus import gpu_memories
from gpubench.campaign.planning import plan_campaign, prepare_request
from gpubench.campaign.requests import parse_request
from gpubench.errors import UsageError
from gpubench.model.base import TomlSource, nearest
from gpubench.model.parameters import sizes_spelled
from gpubench.model.quantities import digits, format_bytes
from gpubench.model.site import Site
from gpubench.model.suite import Suite
from gpubench.node.workloads.catalogue import CATALOGUE, Shape, Workload
from gpubench.plan.size_presets import SHARES, size_preset
from gpubench.plan.worker_memory import worker_memory
from gpubench.resources.own_workloads import workload_named
from gpubench.resources.profiles import default_variant, load_site, toml_or_text

_log = logging.getLogger(__name__)

_SHARED = {field.name for field in dataclasses.fields(CampaignOptions)} - {"ucx", "workers", "nodes", "settings"}
AS_TYPED = ("choice", "name", "path")
"""Kinds of parameters whose text is the value, also where it looks like a number."""


def measure(options: MeasureOptions, observe: Observe = unobserved) -> dict[str, Any]:
    """Plan and run a campaign of one block, one variant and one workload; what it ``measured``.

    Raises:
        UsageError: a name or a value that doesn't exist, processors that aren't there.
        PlanRefusedError: it doesn't fit the site.
    """
    workload = workload_named(options.workload)
    if workload is None:
        raise UsageError(f"no workload '{options.workload}'{nearest(options.workload, CATALOGUE)}")
    params, settings = _parted(options, workload)
    shared = {name: value for name, value in vars(options).items() if name in _SHARED}
    general = CampaignOptions(
        **shared, blocks="1", nodes=str(options.nodes), workers=_workers(options), settings=settings
    )
    site = load_site(options.site, chosen_settings(general))
    general = dataclasses.replace(general, settings=[*settings, *_processors(options, site)])
    request = parse_request(general, _suite(options, workload, params), default_variant(site, options.ucx))
    spec = request.workloads[0]
    shape = Shape(options.nodes, request.workers[0], request.site.layout.threads)
    memory = worker_memory(request, shape.workers_per_node)
    if options.size is not None:
        changed = size_preset(workload, spec.params, options.size, fixed=params, shape=shape, memory=memory)
        spec = dataclasses.replace(spec, params={**spec.params, **changed})
    held = workload.held(spec.params, shape)
    share = f" of {format_bytes(memory)}, {digits(100 * held / memory)} %" if memory else ""
    holds = f"; a worker holds up to {format_bytes(held)}{share}" if held else ""
    _log.info(f"{spec.name}, {spec.backend}: {sizes_spelled(workload, spec.params)}{holds}")
    request, images = prepare_request(dataclasses.replace(request, workloads=[spec]), general)
    campaign = plan_campaign(request, general, images)
    for line in (f"campaign {campaign.directory}", *campaign.plan.notes):
        _log.info(line)
    lifecycle.run(campaign, observe=observe)
    return measured(campaign, held=held, memory=memory)


def _parted(options: MeasureOptions, workload: Workload) -> tuple[dict[str, Any], list[str]]:
    """``--set``: values of the workload's parameters, and settings of the profile; raises UsageError."""
    if options.size is not None and options.size not in SHARES:
        raise UsageError(f"no --size '{options.size}'{nearest(options.size, SHARES)}")
    params: dict[str, Any] = {}
    settings = [] if options.threads is None else [f"layout.threads={options.threads}"]
    for setting in options.settings or []:
        key, equals, text = setting.partition("=")
        param = workload.params.get(key)
        if param is None and key.partition(".")[0] in Site.model_fields:
            settings.append(setting)
        elif equals:
            params[key] = text if param and param.kind in AS_TYPED else toml_or_text(text)
        else:
            raise UsageError(f"--set {setting}: no value", then=f"write it like --set {key}=...")
    return params, settings


def _suite(options: MeasureOptions, workload: Workload, params: dict[str, Any]) -> tuple[Suite, TomlSource]:
    """Of this workload alone; its name becomes a part of the directory's. Raises UsageError."""
    name = re.sub(r"[^A-Za-z0-9.+-]+", "-", workload.name)[:100].strip(".+-")
    entry = {"name": options.workload, "backend": options.backend, "warmup": options.warmup, "params": params}
    return Suite.of({"name": name, "workload": [entry]}, "measure"), TomlSource("measure")


def _workers(options: MeasureOptions) -> str | None:
    """Per node: as many as GPUs, or as CPUs shared by the threads of a worker; raises UsageError."""
    given = [name for name in ("cpus", "gpus", "workers") if getattr(options, name) is not None]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} exclude each other")
    workers, threads = options.gpus or options.workers, options.threads or 1
    if options.cpus is not None:
        if options.cpus % threads:
            raise UsageError(f"--cpus {options.cpus} is no multiple of {threads}, the threads of a worker")
        workers = options.cpus // threads
    return None if workers is None else str(workers)


def _processors(options: MeasureOptions, site: Site) -> list[str]:
    """Settings for ``--cpus`` or ``--gpus``.

    Raises:
        UsageError: a node of the site, or this machine where it is the site, has fewer.
        MissingToolError: this machine has no NVIDIA driver.
    """
    count = options.cpus or options.gpus
    if count is None:
        return []
    here, kind = site.layout.one_machine, "cpu" if options.cpus else "gpu"
    memories = gpu_memories("--gpus", otherwise="--cpus N") if here and kind == "gpu" else []
    if kind == "gpu":
        available = len(memories) if here else site.node.gpus
    else:
        available = len(os.sched_getaffinity(0)) if here else site.node.cores or count
    if count > available:
        where = "this machine lets us use" if here else f"a node of {site.name} has"
        share = f", or --workers {count} if workers are to share CPUs" if kind == "cpu" else ""
        then = f"--{kind}s {available}{share}" if available else "--cpus N"
        raise UsageError(f"--{kind}s {count}: {where} {available}", then=then)
    own = [f"node.gpus={count}", f'node.gpu_memory="{min(memories[:count])}B"'] if memories else []
    return [f'device="{kind}"', *own]
