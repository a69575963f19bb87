"""Checks of a standing cluster: from its processes' reports to findings and CPU affinity. Pure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.model.quantities import format_bytes
from gpubench.model.text import counted
from gpubench.plan.site_checks import SiteFinding

MUST_AGREE = ("python", "dask", "distributed")
Versions = Mapping[str, Mapping[str, str]]
"""By process and package."""


def host_lines(workers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The cluster, and a line per host."""
    hosts = sorted({str(one["host"]) for one in workers})
    yield f"{_sum(workers)} on {counted(len(hosts), 'host')}"
    for host in hosts:
        yield f"  {host}: {_sum([one for one in workers if one['host'] == host])}"


def check_versions(versions: Versions) -> Iterator[SiteFinding]:
    """Versions that must agree, because messages can't be read otherwise; other differences are only reported."""
    names = {name for found in versions.values() for name in found}
    ordered = [*(name for name in MUST_AGREE if name in names), *sorted(names.difference(MUST_AGREE))]
    everywhere = f"in client, scheduler and {len(versions) - 2} workers"
    agree, differ = [], []
    for name in ordered:
        by_who = {who: found.get(name, "none") for who, found in versions.items()}
        count = Counter(by_who.values())
        if len(count) == 1:
            agree.append(f"{name} {next(iter(count))}")
            continue
        usual = count.most_common(1)[0][0]
        odd = [f"{who} {version}" for who, version in by_who.items() if version != usual]
        differ.append(SiteFinding(name not in MUST_AGREE, f"{name} {usual}, but {_some(odd)}"))
    if agree:
        yield SiteFinding(True, f"{', '.join(agree)} {everywhere}")
    yield from differ


def check_processes(processes: Sequence[Mapping[str, Any]], ucx: str | None) -> Iterator[SiteFinding]:
    """UCX as loaded in scheduler and workers, and their packages; ``ucx`` is the planned version, if any."""
    loaded = Counter(str(one["ucx"]["loaded"]) for one in processes)
    planned = ucx if ucx is not None else loaded.most_common(1)[0][0]
    odd = [
        f"{one['role']} {one['address']} {one['ucx']['loaded']}" for one in processes if one["ucx"]["loaded"] != planned
    ]
    if odd:
        yield SiteFinding(False, f"UCX {planned}, but {_some(odd)}")
    else:
        word = "no UCX is loaded" if planned == "none" else f"UCX {planned} is loaded"
        yield SiteFinding(True, f"{word} in scheduler and {len(processes) - 1} workers")
    packages = len({str(one["packages"]) for one in processes})
    if packages > 1:
        yield SiteFinding(True, f"{packages} different sets of packages, which may or may not matter")


def check_count(workers: int, planned: int | None) -> SiteFinding:
    """Whether there are as many workers as planned; None: no number was planned."""
    if planned is None:
        return SiteFinding(workers > 0, f"{workers} workers")
    return SiteFinding(workers >= planned, f"{workers} of {planned} workers")


def _some(words: Sequence[str]) -> str:
    return f"{', '.join(words[:4])}{' ...' if len(words) > 4 else ''}"


def _sum(workers: Sequence[Mapping[str, Any]]) -> str:
    threads = sum(int(one["threads"]) for one in workers)
    memory = sum(int(one["memory_limit"]) for one in workers)
    gpus = {(str(one["host"]), _gpu(one)) for one in workers if one.get("gpus")}
    return f"{counted(len(workers), 'worker')}, {threads} threads, {format_bytes(memory)}, {len(gpus)} GPUs"


Facts = Mapping[str, Any]
"""The report of a worker's own thread (``placed`` in ``node/inspect_cluster.py``), with address, name and threads."""


@dataclasses.dataclass(frozen=True)
class WorkerAffinity:
    """One worker's verdict: ``why`` it is wrong, empty where it isn't; ``note`` of what is only worth knowing."""

    name: str
    host: str
    allowed: str
    expected: str
    numa: str
    gpu: str
    why: str
    note: str = ""


def judge_affinity(workers: Sequence[Facts], cpus: int | None = None) -> list[WorkerAffinity]:
    """A verdict per worker.

    A worker must be allowed at least as many CPUs as it has threads (``cpus`` says another number), and all workers
    inside a set of CPUs must find as many there as they have threads together: jsrun's default ``packed:1`` puts six
    on one core, where each alone has CPUs enough. The set is counted in cores (not hyper-threads) wherever the machine
    has a core for every thread; otherwise it is over-subscribed, which is only reported. Two workers may not share a
    GPU.
    """
    found = []
    for worker in workers:
        if "allowed" not in worker:
            found.append(WorkerAffinity(str(worker["name"]), "?", "?", "", "", "", str(worker["error"])))
            continue
        beside = [one for one in workers if one.get("host") == worker["host"] and "allowed" in one]
        gpu = _gpu(worker)
        sharing = [str(one["name"]) for one in beside if _gpu(one) == gpu]
        shared = f"shares GPU {gpu} with {', '.join(sharing)}" if gpu and len(sharing) > 1 else ""
        why = _too_few(worker, beside, cpus) or shared
        threads, there = sum(int(one["threads"]) for one in beside), len(worker["cpus"])
        found.append(
            WorkerAffinity(
                name=str(worker["name"]),
                host=str(worker["host"]),
                allowed=cpu_list(worker["allowed"]),
                expected=f">= {_expected(worker, cpus)}",
                numa=",".join(node for node, near in sorted(worker["numa"].items()) if {*near} & {*worker["allowed"]})
                or "-",
                gpu=gpu or "-",
                why=why,
                note=f"over-subscribed: {threads} threads on {there} CPUs" if threads > there and not why else "",
            )
        )
    return found


def cpu_list(cpus: Sequence[int]) -> str:
    """``0 1 2 8`` → ``0-2,8``."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(map(str, run)) for run in runs)


def _expected(worker: Facts, cpus: int | None) -> int:
    return cpus or min(int(worker["threads"]), len(worker["cpus"]))


def _too_few(worker: Facts, beside: Sequence[Facts], cpus: int | None) -> str:
    allowed, expected = set(worker["allowed"]), _expected(worker, cpus)
    if len(allowed) < expected:
        return f"{len(allowed)} CPUs for {expected} threads: bound too tightly (jsrun --bind rs, OMP_PROC_BIND=FALSE)"
    inside = [one for one in beside if set(one["allowed"]) <= allowed]
    threads = sum(_expected(one, cpus) for one in inside)
    on_host = sum(_expected(one, cpus) for one in beside)
    places, all_places = (
        (_cores(worker, allowed), _cores(worker, worker["cpus"]))
        if _cores(worker, worker["cpus"]) >= on_host
        else (len(allowed), len(worker["cpus"]))
    )
    if threads > places and places < all_places:
        word = "cores" if all_places != len(worker["cpus"]) else "CPUs"
        return f"{counted(len(inside), 'worker')} with {threads} threads packed on {places} of {all_places} {word}"
    return ""


def _cores(worker: Facts, cpus: Sequence[int] | set[int]) -> int:
    return len({worker["cores"].get(str(cpu), cpu) for cpu in cpus})


def _gpu(worker: Facts) -> str:
    return str(worker.get("gpus") or "").split(",")[0]
