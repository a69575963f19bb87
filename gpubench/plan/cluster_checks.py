"""Checks of what the processes of a standing cluster say of themselves. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.model.quantities import format_bytes
from gpubench.model.text import counted
from gpubench.plan.check_result import CheckResult
from gpubench.plan.cpu_affinity import gpu_of

MUST_AGREE = ("python", "dask", "distributed")
Versions = Mapping[str, Mapping[str, str]]
"""By process and package."""


def host_lines(workers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The cluster, and a line per host."""
    hosts = sorted({str(worker["host"]) for worker in workers})
    yield f"{_sum(workers)} on {counted(len(hosts), 'host')}"
    for host in hosts:
        yield f"  {host}: {_sum([worker for worker in workers if worker['host'] == host])}"


def check_versions(versions: Versions) -> Iterator[CheckResult]:
    """Versions that must agree, because messages can't be read otherwise; other differences are only reported."""
    names = {name for packages in versions.values() for name in packages}
    ordered = [*(name for name in MUST_AGREE if name in names), *sorted(names.difference(MUST_AGREE))]
    everywhere = f"in client, scheduler and {len(versions) - 2} workers"
    agree, differ = [], []
    for name in ordered:
        by_who = {who: packages.get(name, "none") for who, packages in versions.items()}
        count = Counter(by_who.values())
        if len(count) == 1:
            agree.append(f"{name} {next(iter(count))}")
            continue
        usual = count.most_common(1)[0][0]
        odd = [f"{who} {version}" for who, version in by_who.items() if version != usual]
        differ.append(CheckResult(name not in MUST_AGREE, f"{name} {usual}, but {_first_four(odd)}"))
    if agree:
        yield CheckResult(True, f"{', '.join(agree)} {everywhere}")
    yield from differ


def check_libraries(processes: Sequence[Mapping[str, Any]], ucx: str | None) -> Iterator[CheckResult]:
    """UCX as loaded in scheduler and workers, and their packages; ``ucx`` is the planned version, if any."""
    loaded = Counter(str(process["ucx"]) for process in processes)
    planned = ucx if ucx is not None else loaded.most_common(1)[0][0]
    odd = [
        f"{process['role']} {process['address']} {process['ucx']}" for process in processes if process["ucx"] != planned
    ]
    if odd:
        yield CheckResult(False, f"UCX {planned}, but {_first_four(odd)}")
    else:
        word = "no UCX is loaded" if planned == "none" else f"UCX {planned} is loaded"
        yield CheckResult(True, f"{word} in scheduler and {len(processes) - 1} workers")
    packages = len({str(process["packages"]) for process in processes})
    if packages > 1:
        yield CheckResult(True, f"{packages} different sets of packages, which may or may not matter")


def check_count(workers: int, planned: int | None) -> CheckResult:
    """Whether there are as many workers as planned; None: no number was planned."""
    if planned is None:
        return CheckResult(workers > 0, f"{workers} workers")
    return CheckResult(workers >= planned, f"{workers} of {planned} workers")


def _first_four(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:4])}{' ...' if len(texts) > 4 else ''}"


def _sum(workers: Sequence[Mapping[str, Any]]) -> str:
    threads = sum(int(worker["threads"]) for worker in workers)
    memory = sum(int(worker["memory_limit"]) for worker in workers)
    gpus = {(str(worker["host"]), gpu_of(worker)) for worker in workers if worker.get("gpus")}
    counts = f"{counted(len(workers), 'worker')}, {counted(threads, 'thread')}"
    return f"{counts}, {format_bytes(memory)}, {counted(len(gpus), 'GPU')}"
