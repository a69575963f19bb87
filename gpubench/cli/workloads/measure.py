"""``gpubench measure``: one workload on a cluster of ours, as a campaign of one block and one variant, and its result:
one object, and the lines for people that are made of it."""

import contextlib
import dataclasses
import json
import os
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.campaign import lifecycle
from gpubench.campaign.option_values import chosen
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.own_gpus import gpu_memories
from gpubench.campaign.planning import plan_campaign, prepare_request
from gpubench.campaign.preflight import prepare
from gpubench.campaign.requests import build_request, memory_of_a_worker
from gpubench.campaign.states import account_now
from gpubench.cli.progress import progress_for
from gpubench.cli.say import say, say_text
from gpubench.cli.workloads import catalogue
from gpubench.cli.workloads.commands import MeasureOptions
from gpubench.errors import DataError, IncompleteError, UsageError
from gpubench.files import reading
from gpubench.model.base import nearest
from gpubench.model.own_workload import OwnWorkload
from gpubench.model.parameters import sizes_spelled
from gpubench.model.plan import numbers_of_blocks
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.model.suite import Suite, SuiteEntry
from gpubench.model.text import counted
from gpubench.node.spec import WorkloadRecord, WorkloadSpec
from gpubench.node.spec.plain import SpecError, parse_lines
from gpubench.node.spec.records import LINKS_FILE, SAMPLES_FILE
from gpubench.node.workloads.catalogue import CATALOGUE, Shape, Workload
from gpubench.own_workloads import find_own
from gpubench.plan.feasibility import SHARES, size_preset
from gpubench.plan.request import Request
from gpubench.profiles import default_variant, load_site, toml_or_text
from gpubench.store.campaign import Campaign

SOURCE = "measure"
AS_TYPED = ("choice", "name", "path")
"""Kinds of parameters whose text is the value, also where it looks like a number."""


def measure(asked: MeasureOptions) -> None:
    """Plan, run, and print the result.

    Raises:
        UsageError: a name or a value that doesn't exist, processors that aren't there.
        PlanRefusedError: it doesn't fit the site.
        IncompleteError: it was measured, and failed, or wasn't.
    """
    own = find_own(asked.workload)
    workload = known(asked, own)
    parameters, settings = parted(asked, workload)
    site = _site(asked, settings)
    workers = _workers(asked)
    general = CampaignOptions(
        site=asked.site,
        blocks="1",
        workers=None if workers is None else str(workers),
        protocol=asked.protocol,
        runtime=asked.runtime,
        base=asked.base,
        date=asked.date,
        seed=asked.seed,
        settings=settings,
        outputs=asked.outputs,
    )
    chosen(general, "date")
    planned = resolved(asked, parameters, site, own)
    variants = [default_variant(site, asked.ucx)]
    request = build_request(
        general, site, directory_word(planned.name), [planned], variants, nodes=[asked.nodes], own=[own] if own else []
    )
    shape = Shape(asked.nodes, request.workers[0], site.layout.threads)
    memory = memory_of_a_worker(request)
    request = dataclasses.replace(
        request, workloads=[sized(asked, workload, parameters, planned, shape=shape, memory=memory)]
    )
    with progress_to_stderr(asked.as_json):
        for line in size_lines(workload, request.workloads[0], shape, memory, asked.size):
            say(line)
        result = _run(request, general, held=workload.held(request.workloads[0].params, shape), memory=memory)
    show(result, as_json=asked.as_json)


def _run(request: Request, options: CampaignOptions, *, held: int, memory: int) -> dict[str, Any]:
    request, images = prepare_request(request, options)
    campaign = plan_campaign(request, options, images)
    say(f"campaign {campaign.directory}")
    for note in campaign.plan.notes:
        say(f"  {note}")
    prepare(campaign)
    lifecycle.run_blocks(campaign, numbers_of_blocks(campaign.jobs), observe=progress_for)
    return of_campaign(campaign, held=held, memory=memory)


def show(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the result; raises IncompleteError if the workload didn't end well."""
    if as_json:
        say_text(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        for line in result_lines(result):
            say(line)
    require_ok(result)


@contextlib.contextmanager
def progress_to_stderr(as_json: bool) -> Iterator[None]:
    """With ``--json``, progress goes to standard error, so that standard output is one object."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


def parted(asked: MeasureOptions, workload: Workload) -> tuple[dict[str, Any], list[str]]:
    """``--set``: values of the workload's parameters, and settings of the profile (``limits.start=2m``).

    Raises:
        UsageError: neither knows the name.
    """
    parameters: dict[str, Any] = {}
    settings = []
    for setting in asked.settings or []:
        key, equals, text = setting.partition("=")
        param = workload.params.get(key)
        if param is None and key.partition(".")[0] in Site.model_fields:
            settings.append(setting)
            continue
        if param is None and not workload.takes_any:
            near = nearest(key, workload.params)
            raise UsageError(f"--set {setting}: {asked.workload} has no parameter '{key}'{near}")
        if not equals:
            raise UsageError(f"--set {setting}: no value", then=f"write it like --set {key}=...")
        parameters[key] = text if param and param.kind in AS_TYPED else toml_or_text(text)
    return parameters, settings


def known(asked: MeasureOptions, own: OwnWorkload | None) -> Workload:
    """The workload; raises UsageError."""
    return own.described if own else catalogue.chosen(asked.workload)[0]


def directory_word(name: str) -> str:
    """A workload's name as a part of a directory's name."""
    return re.sub(r"[^\w.+-]+", "-", name)


def resolved(asked: MeasureOptions, parameters: Mapping[str, Any], site: Site, own: OwnWorkload | None) -> WorkloadSpec:
    """The workload with complete, plain parameters; raises UsageError."""
    entry = SuiteEntry(name=asked.workload, backend=asked.backend, warmup=asked.warmup, params=dict(parameters))
    suite = Suite(name=SOURCE, workload=[entry])
    mine = {asked.workload: own} if own else {}
    return suite.resolve(SOURCE, reps=asked.reps, timeout_s=site.limits.workload, own=mine)[0]


def sized(
    asked: MeasureOptions,
    workload: Workload,
    parameters: Mapping[str, Any],
    spec: WorkloadSpec,
    *,
    shape: Shape,
    memory: int,
) -> WorkloadSpec:
    """With the sizes of ``--size``; what ``--set`` gave stays. Raises UsageError and PlanRefusedError."""
    if asked.size is None:
        return spec
    if asked.size not in SHARES:
        raise UsageError(f"no --size '{asked.size}'{nearest(asked.size, SHARES)}")
    changed = size_preset(workload, spec.params, asked.size, fixed=parameters, shape=shape, memory=memory)
    return dataclasses.replace(spec, params={**spec.params, **changed})


def size_lines(workload: Workload, spec: WorkloadSpec, shape: Shape, memory: int, size: str | None) -> Iterator[str]:
    """What will be measured."""
    yield f"{spec.name}, {spec.backend}: {sizes_spelled(workload, spec.params)}{f'  (--size {size})' if size else ''}"
    held = workload.held(spec.params, shape)
    if held:
        share = f" of {format_bytes(memory)}, {100 * held / memory:.2g} %" if memory else ""
        yield f"  a worker holds up to {format_bytes(held)}{share}"


def _site(asked: MeasureOptions, settings: list[str]) -> Site:
    """The profile with everything laid over it, which this adds to ``settings``; raises UsageError."""
    given = [name for name in ("cpus", "gpus", "workers") if getattr(asked, name) is not None]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} exclude each other")
    short = {"runtime": asked.runtime, "image.base": asked.base}
    laid = [f'{key}="{value}"' for key, value in short.items() if value]
    if asked.threads is not None:
        settings.append(f"layout.threads={asked.threads}")
    site = load_site(asked.site, [*settings, *laid])
    if asked.cpus is not None:
        require_cpus(asked.cpus, site)
        settings.append('device="cpu"')
    if asked.gpus is not None:
        settings += require_gpus(asked.gpus, site)
    return load_site(asked.site, [*settings, *laid])


def _workers(asked: MeasureOptions) -> int | None:
    """Per node: as many as GPUs, or as CPUs shared by the threads of a worker; raises UsageError."""
    if asked.cpus is None:
        return asked.gpus or asked.workers
    threads = asked.threads or 1
    if asked.cpus % threads:
        raise UsageError(f"--cpus {asked.cpus} is no multiple of {threads}, the threads of a worker")
    return asked.cpus // threads


def require_cpus(asked: int, site: Site) -> None:
    """Raise UsageError unless a node of the site, or this machine where it is the site, has so many CPUs."""
    if site.layout.one_machine:
        there, where = len(os.sched_getaffinity(0)), "this machine lets us use"
    else:
        there, where = site.node.cores or asked, f"a node of {site.name} has"
    if asked > there:
        raise UsageError(
            f"--cpus {asked}: {where} {there}",
            then=f"--cpus {there}, or --workers {asked} if workers are to share CPUs",
        )


def require_gpus(asked: int, site: Site) -> list[str]:
    """Check that there are so many GPUs, and return settings (``KEY=VALUE``) that the profile lacks.

    Raises:
        UsageError: fewer GPUs.
        MissingToolError: this machine has no NVIDIA driver.
    """
    settings = ['device="gpu"']
    if not site.layout.one_machine:
        _enough(asked, site.node.gpus, f"a node of {site.name} has")
        return settings
    memories = gpu_memories("--gpus", otherwise="--cpus N")
    _enough(asked, len(memories), "NVML knows")
    return [*settings, f"node.gpus={asked}", f'node.gpu_memory="{min(memories[:asked])}B"']


def _enough(asked: int, there: int, where: str) -> None:
    if asked > there:
        raise UsageError(f"--gpus {asked}: {where} {there}", then=f"--gpus {there}" if there else "--cpus N")


MEASURE = "gpubench/measure/1"
SHOWN = 12
"""Repetitions that are shown one by one; ``--json`` has them all."""


def of_campaign(campaign: Campaign, *, held: int, memory: int) -> dict[str, Any]:
    """What the one run of a campaign measured.

    Args:
        campaign: of one block, one variant and one workload, which has been run.
        held: bytes that a worker holds at the worst moment.
        memory: bytes that it has, 0: not known.
    """
    plan = campaign.plan
    (outcome,) = account_now(campaign).outcomes
    (planned,) = plan.workloads
    variant = plan.variants[0]
    record = outcome.record
    return result(
        planned,
        next(iter(record.workloads), None) if record else None,
        outcome.directory,
        status=outcome.status,
        reason=outcome.reason,
        cluster={
            "site": plan.site.name,
            "nodes": outcome.job.nodes,
            "workers": outcome.job.nodes * outcome.job.workers_per_node,
            "threads_per_worker": plan.threads_per_worker,
            "device": record.device if record else plan.device,
            "protocol": plan.protocol,
            "transport": record.transport if record else [],
            "variant": variant.label,
            "ucx_version": variant.image.ucx_version if variant.image else "",
            "image": variant.image.id if variant.image else "",
            "hosts": record.hosts if record else [],
            "memory_per_worker": memory,
            "held_per_worker": held,
        },
        campaign=str(campaign.directory),
        warnings=record.warnings if record else [],
    )


def result(
    spec: WorkloadSpec,
    record: WorkloadRecord | None,
    directory: Path | None,
    *,
    status: str,
    reason: str,
    cluster: Mapping[str, Any],
    campaign: str,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """The object that ``--json`` prints: seconds and bytes; ``status`` is ``ok failed skipped lost``.

    ``record`` and ``directory`` (with its samples and links) are None where the run left none. Rates are of the median
    repetition, and 0 where nothing was counted. Raises DataError where a file is damaged.
    """
    samples = _lines(directory, SAMPLES_FILE)
    timed = [row for row in samples if not row["warmup"]]
    seconds = [float(row["wall_s"]) for row in timed]
    median = statistics.median(seconds) if seconds else 0.0
    nominal = int(timed[0]["bytes"]) if timed else 0
    tasks = int(spec.params.get("count", 0)) if timed and not nominal else 0
    bytes_per_s = nominal / median if median else 0.0
    details = dict(record.details) if record else {}
    if record is not None and record.status != "ok":
        status, reason = record.status, record.reason
    return {
        "schema": MEASURE,
        "workload": spec.name,
        "backend": spec.backend,
        "params": dict(spec.params),
        "params_id": spec.params_id,
        "cluster": dict(cluster),
        "status": status,
        "reason": reason,
        "warmup": spec.warmup,
        "reps": len(seconds),
        "wall_s": seconds,
        "median_s": median,
        "least_s": min(seconds, default=0.0),
        "most_s": max(seconds, default=0.0),
        "bytes": nominal,
        "bytes_per_s": bytes_per_s,
        "bytes_per_s_per_worker": bytes_per_s / cluster["workers"] if cluster["workers"] else 0.0,
        "tasks_per_s": tasks / median if median else 0.0,
        "answer": samples[-1]["answer"] if samples else "unchecked",
        "check": {name: value for name, value in details.items() if name not in _BYTES},
        "moved": {**{name: details.get(name, 0) for name in _BYTES}, "links": _lines(directory, LINKS_FILE)},
        "warnings": list(warnings),
        "campaign": campaign,
        "directory": str(directory) if directory else "",
    }


_BYTES = ("seen_bytes", "least_moved_bytes", "keys_left")


def result_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """A screenful."""
    cluster = result["cluster"]
    yield ""
    yield f"{result['workload']}, {result['backend']}: {result['status']}"
    yield _line("sizes", sizes_spelled(CATALOGUE.get(result["workload"]), result["params"]))
    yield _line("cluster", _cluster(cluster))
    if result["reps"]:
        each = " ".join(f"{one:.4g}" for one in result["wall_s"][:SHOWN])
        more = f" ... {result['reps'] - SHOWN} more" if result["reps"] > SHOWN else ""
        yield _line("seconds", f"{each}{more}  ({result['reps']} repetitions after {result['warmup']} to warm up)")
        yield _line("median", f"{result['median_s']:.4g} s, from {result['least_s']:.4g} to {result['most_s']:.4g}")
        yield _line("rate", _rate(result))
    plain = {name: value for name, value in result["check"].items() if isinstance(value, (str, int, float))}
    check = ", ".join(f"{name} {_figure(value)}" for name, value in plain.items())  # nested ones are in the JSON
    yield _line("check", f"{result['answer']}{f': {check}' if check else ''}")
    if result["reps"]:
        moved = result["moved"]
        yield _line(
            "moved",
            f"{format_bytes(moved['seen_bytes'])} seen between workers, {format_bytes(moved['least_moved_bytes'])} had "
            "to be",
        )
    for warning in result["warnings"]:
        yield _line("warning", warning)
    yield _line("files", result["directory"] or result["campaign"])


def require_ok(result: Mapping[str, Any]) -> None:
    """Raise IncompleteError unless the workload was measured and its answers were right."""
    if result["status"] != "ok":
        raise IncompleteError(
            f"{result['workload']} {result['status']}: {result['reason'] or 'no reason given'}",
            then=f"see {result['directory'] or result['campaign']}",
        )


def _cluster(cluster: Mapping[str, Any]) -> str:
    transport = f" over {', '.join(cluster['transport'])}" if cluster["transport"] else ""
    ucx = f", UCX {cluster['ucx_version']}" if cluster["protocol"] != "tcp" and cluster["ucx_version"] else ""
    counts = [counted(cluster["nodes"], "node"), counted(cluster["workers"], "worker")]
    return (
        f"{cluster['site']}: {', '.join(counts)} of {counted(cluster['threads_per_worker'], 'thread')}, "
        f"{cluster['device']}, {cluster['protocol']}{transport}{ucx}"
    )


def _rate(result: Mapping[str, Any]) -> str:
    if result["bytes"]:
        return (
            f"{format_bytes(result['bytes_per_s'])}/s, {format_bytes(result['bytes_per_s_per_worker'])}/s per worker "
            f"({format_bytes(result['bytes'])} counted)"
        )
    return f"{result['tasks_per_s']:.4g} tasks/s" if result["tasks_per_s"] else "none"


def _figure(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(name: str, text: str) -> str:
    return f"  {name:<8} {text}"


def _lines(directory: Path | None, name: str) -> list[dict[str, Any]]:
    if directory is None or not (directory / name).exists():
        return []
    try:
        with reading(directory / name):
            return parse_lines((directory / name).read_text(encoding="utf-8"))
    except (SpecError, json.JSONDecodeError) as error:
        raise DataError(f"{directory / name}: {error}") from None
