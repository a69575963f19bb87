"""One workload on a cluster of ours, as a campaign of one block and one variant."""

import dataclasses
import logging
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpubench.campaign import lifecycle
from gpubench.campaign.measure_options import MeasureOptions
from gpubench.campaign.measured import of_campaign
from gpubench.campaign.observer import Observe, unobserved
from gpubench.campaign.option_values import chosen_values
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.own_gpus import gpu_memories
from gpubench.campaign.planning import plan_campaign, prepare_request
from gpubench.campaign.preflight import prepare
from gpubench.campaign.requests import build_request
from gpubench.errors import IncompleteError, UsageError
from gpubench.images.compatibility import with_waiting
from gpubench.model.base import nearest
from gpubench.model.own_workload import OwnWorkload
from gpubench.model.parameters import sizes_spelled
from gpubench.model.plan import numbers_of_blocks
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.model.suite import Suite, SuiteEntry
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.catalogue import Shape, Workload
from gpubench.plan.request import Request
from gpubench.plan.size_presets import SHARES, size_preset
from gpubench.plan.worker_memory import worker_memory
from gpubench.resources.own_workloads import find_own, workloads_named
from gpubench.resources.profiles import default_variant, known_issues, load_site, toml_or_text
from gpubench.store.campaign import Campaign

_log = logging.getLogger(__name__)

SOURCE = "measure"
AS_TYPED = ("choice", "name", "path")
"""Kinds of parameters whose text is the value, also where it looks like a number."""


def measure(options: MeasureOptions, observe: Observe = unobserved) -> dict[str, Any]:
    """Plan and run a campaign of one block, one variant and one workload; what it measured, as ``measured.result``.

    Raises:
        UsageError: a name or a value that doesn't exist, processors that aren't there.
        PlanRefusedError: it doesn't fit the site.
    """
    own = find_own(options.workload)
    workload = own.described if own else workloads_named(options.workload)[0]
    parameters, settings = parted(options, workload)
    site = _site(options, settings)
    workers = _workers(options)
    general = CampaignOptions(
        site=options.site,
        blocks="1",
        workers=None if workers is None else str(workers),
        protocol=options.protocol,
        runtime=options.runtime,
        base=options.base,
        date=options.date,
        seed=options.seed,
        settings=settings,
        outputs=options.outputs,
    )
    planned = resolved(options, parameters, site, own)
    variants = [default_variant(site, options.ucx)]
    request = build_request(
        chosen_values(general),
        site,
        re.sub(r"[^\w.+-]+", "-", planned.name),  # a part of the directory's name
        [planned],
        variants,
        nodes=[options.nodes],
        own=[own] if own else [],
        known_issues=known_issues(site),
    )
    with_waiting(site, request.protocol, {})  # refuses a profile that contradicts itself, before sizes are chosen
    shape = Shape(options.nodes, request.workers[0], site.layout.threads)
    memory = worker_memory(request, max(request.workers))
    request = dataclasses.replace(
        request, workloads=[sized(options, workload, parameters, planned, shape=shape, memory=memory)]
    )
    for line in size_lines(workload, request.workloads[0], shape, memory, options.size):
        _log.info(line)
    held = workload.held(request.workloads[0].params, shape)
    return of_campaign(_run(request, general, observe), held=held, memory=memory)


def _run(request: Request, options: CampaignOptions, observe: Observe) -> Campaign:
    request, images = prepare_request(request, options)
    campaign = plan_campaign(request, options, images)
    _log.info(f"campaign {campaign.directory}")
    for note in campaign.plan.notes:
        _log.info(f"  {note}")
    prepare(campaign)
    lifecycle.run_blocks(campaign, numbers_of_blocks(campaign.jobs), observe=observe)
    return campaign


def parted(options: MeasureOptions, workload: Workload) -> tuple[dict[str, Any], list[str]]:
    """``--set``: values of the workload's parameters, and settings of the profile (``limits.start=2m``).

    Raises:
        UsageError: neither knows the name.
    """
    parameters: dict[str, Any] = {}
    settings = []
    for setting in options.settings or []:
        key, equals, text = setting.partition("=")
        param = workload.params.get(key)
        if param is None and key.partition(".")[0] in Site.model_fields:
            settings.append(setting)
            continue
        if param is None and not workload.takes_any:
            near = nearest(key, workload.params)
            raise UsageError(f"--set {setting}: {options.workload} has no parameter '{key}'{near}")
        if not equals:
            raise UsageError(f"--set {setting}: no value", then=f"write it like --set {key}=...")
        parameters[key] = text if param and param.kind in AS_TYPED else toml_or_text(text)
    return parameters, settings


def resolved(
    options: MeasureOptions, parameters: Mapping[str, Any], site: Site, own: OwnWorkload | None
) -> WorkloadSpec:
    """The workload with complete, plain parameters; raises UsageError."""
    entry = SuiteEntry(name=options.workload, backend=options.backend, warmup=options.warmup, params=dict(parameters))
    suite = Suite(name=SOURCE, workload=[entry])
    mine = {options.workload: own} if own else {}
    return suite.resolve(SOURCE, reps=options.reps, timeout_s=site.limits.workload, own=mine)[0]


def sized(
    options: MeasureOptions,
    workload: Workload,
    parameters: Mapping[str, Any],
    spec: WorkloadSpec,
    *,
    shape: Shape,
    memory: int,
) -> WorkloadSpec:
    """With the sizes of ``--size``; what ``--set`` gave stays. Raises UsageError and PlanRefusedError."""
    if options.size is None:
        return spec
    if options.size not in SHARES:
        raise UsageError(f"no --size '{options.size}'{nearest(options.size, SHARES)}")
    changed = size_preset(workload, spec.params, options.size, fixed=parameters, shape=shape, memory=memory)
    return dataclasses.replace(spec, params={**spec.params, **changed})


def size_lines(workload: Workload, spec: WorkloadSpec, shape: Shape, memory: int, size: str | None) -> Iterator[str]:
    """What will be measured."""
    yield f"{spec.name}, {spec.backend}: {sizes_spelled(workload, spec.params)}{f'  (--size {size})' if size else ''}"
    held = workload.held(spec.params, shape)
    if held:
        share = f" of {format_bytes(memory)}, {100 * held / memory:.2g} %" if memory else ""
        yield f"  a worker holds up to {format_bytes(held)}{share}"


def _site(options: MeasureOptions, settings: list[str]) -> Site:
    """The profile with everything laid over it, which this adds to ``settings``; raises UsageError."""
    given = [name for name in ("cpus", "gpus", "workers") if getattr(options, name) is not None]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} exclude each other")
    short = {"runtime": options.runtime, "image.base": options.base}
    laid = [f'{key}="{value}"' for key, value in short.items() if value]
    if options.threads is not None:
        settings.append(f"layout.threads={options.threads}")
    site = load_site(options.site, [*settings, *laid])
    if options.cpus is not None:
        require_cpus(options.cpus, site)
        settings.append('device="cpu"')
    if options.gpus is not None:
        settings += require_gpus(options.gpus, site)
    return load_site(options.site, [*settings, *laid])


def _workers(options: MeasureOptions) -> int | None:
    """Per node: as many as GPUs, or as CPUs shared by the threads of a worker; raises UsageError."""
    if options.cpus is None:
        return options.gpus or options.workers
    threads = options.threads or 1
    if options.cpus % threads:
        raise UsageError(f"--cpus {options.cpus} is no multiple of {threads}, the threads of a worker")
    return options.cpus // threads


def require_cpus(cpus: int, site: Site) -> None:
    """Raise UsageError unless a node of the site, or this machine where it is the site, has so many CPUs."""
    if site.layout.one_machine:
        available, where = len(os.sched_getaffinity(0)), "this machine lets us use"
    else:
        available, where = site.node.cores or cpus, f"a node of {site.name} has"
    if cpus > available:
        raise UsageError(
            f"--cpus {cpus}: {where} {available}",
            then=f"--cpus {available}, or --workers {cpus} if workers are to share CPUs",
        )


def require_gpus(gpus: int, site: Site) -> list[str]:
    """Check that there are so many GPUs, and return settings (``KEY=VALUE``) that the profile lacks.

    Raises:
        UsageError: fewer GPUs.
        MissingToolError: this machine has no NVIDIA driver.
    """
    settings = ['device="gpu"']
    if not site.layout.one_machine:
        _enough(gpus, site.node.gpus, f"a node of {site.name} has")
        return settings
    memories = gpu_memories("--gpus", otherwise="--cpus N")
    _enough(gpus, len(memories), "NVML knows")
    return [*settings, f"node.gpus={gpus}", f'node.gpu_memory="{min(memories[:gpus])}B"']


def _enough(gpus: int, available: int, where: str) -> None:
    if gpus > available:
        raise UsageError(f"--gpus {gpus}: {where} {available}", then=f"--gpus {available}" if available else "--cpus N")


def require_ok(result: Mapping[str, Any]) -> None:
    """Raise IncompleteError unless the workload was measured and its answers were right."""
    if result["status"] != "ok":
        raise IncompleteError(
            f"{result['workload']} {result['status']}: {result['reason'] or 'no reason given'}",
            then=f"see {result['directory'] or result['campaign']}",
        )
