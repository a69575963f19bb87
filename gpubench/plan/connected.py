"""Is this the cluster that it should be? Pure: what its processes said in, findings out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.model.quantities import format_bytes
from gpubench.plan.site_checks import SiteFinding

MUST_AGREE = ("python", "dask", "distributed")
Versions = Mapping[str, Mapping[str, str]]
"""By process and package."""


def host_lines(workers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The cluster, and a line per host."""
    hosts = sorted({str(one["host"]) for one in workers})
    yield f"{_sum(workers)} on {len(hosts)} host{'' if len(hosts) == 1 else 's'}"
    for host in hosts:
        yield f"  {host}: {_sum([one for one in workers if one['host'] == host])}"


def check_versions(versions: Versions) -> Iterator[SiteFinding]:
    """What must agree lest messages can't be read; of the rest it is only said."""
    names = sorted({name for found in versions.values() for name in found}, key=_order)
    everywhere = f"in client, scheduler and {len(versions) - 2} workers"
    agree, differ = [], []
    for name in names:
        count = Counter(found.get(name, "none") for found in versions.values())
        if len(count) == 1:
            agree.append(f"{name} {next(iter(count))}")
            continue
        usual = count.most_common(1)[0][0]
        odd = [f"{who} {found.get(name, 'none')}" for who, found in versions.items() if found.get(name) != usual]
        what = f"{name} {usual}, but {', '.join(odd[:4])}{' ...' if len(odd) > 4 else ''}"
        differ.append(SiteFinding(name not in MUST_AGREE, what))
    if agree:
        yield SiteFinding(True, f"{', '.join(agree)} {everywhere}")
    yield from differ


def check_processes(processes: Sequence[Mapping[str, Any]], ucx: str | None) -> Iterator[SiteFinding]:
    """UCX as loaded in scheduler and workers, and their packages; ``ucx`` is the version planned, None: nobody did."""
    loaded = Counter(str(one["ucx"]["loaded"]) for one in processes)
    planned = ucx if ucx is not None else loaded.most_common(1)[0][0]
    odd = [
        f"{one['role']} {one['address']} {one['ucx']['loaded']}" for one in processes if one["ucx"]["loaded"] != planned
    ]
    if odd:
        yield SiteFinding(False, f"UCX {planned}, but {', '.join(odd[:4])}{' ...' if len(odd) > 4 else ''}")
    else:
        word = "no UCX is loaded" if planned == "none" else f"UCX {planned} is loaded"
        yield SiteFinding(True, f"{word} in scheduler and {len(processes) - 1} workers")
    packages = len({str(one["packages"]) for one in processes})
    if packages > 1:
        yield SiteFinding(True, f"{packages} different sets of packages, which may or may not matter")


def check_count(workers: int, planned: int | None) -> SiteFinding:
    """As many as planned; None: nobody said how many."""
    if planned is None:
        return SiteFinding(workers > 0, f"{workers} workers")
    return SiteFinding(workers >= planned, f"{workers} of {planned} workers")


def _sum(workers: Sequence[Mapping[str, Any]]) -> str:
    threads = sum(int(one["threads"]) for one in workers)
    memory = sum(int(one["memory_limit"]) for one in workers)
    gpus = {(str(one["host"]), str(one["gpus"]).split(",")[0]) for one in workers if one.get("gpus")}
    words = [f"{len(workers)} worker{'' if len(workers) == 1 else 's'}", f"{threads} threads", format_bytes(memory)]
    return ", ".join([*words, f"{len(gpus)} GPUs"])


def _order(name: str) -> tuple[int, str]:
    return (MUST_AGREE.index(name) if name in MUST_AGREE else len(MUST_AGREE)), name
