"""Where a cluster's workers may run, against what their threads need. Pure: facts in, a verdict per worker out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
"""What a worker's own thread said (``placed`` in ``node/inspect_cluster.py``), with address, name and threads."""


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


def judge_places(workers: Sequence[Facts], cpus: int | None = None) -> list[WorkerAffinity]:
    """A verdict per worker.

    A worker must be allowed at least as many CPUs as it has threads (``cpus`` says another number), and all workers
    inside a set of CPUs must find as many there as they have threads together: jsrun's default ``packed:1`` puts six
    on one core, where each alone has CPUs enough. The set is counted in cores (not hyper-threads) wherever the machine
    has a core for every thread; where it hasn't, it is over-subscribed, which is only said. Two workers may not share a
    GPU.
    """
    found = []
    for worker in workers:
        if "allowed" not in worker:
            found.append(WorkerAffinity(str(worker["name"]), "?", "?", "", "", "", str(worker["error"])))
            continue
        beside = [one for one in workers if one.get("host") == worker["host"] and "allowed" in one]
        why = _too_few(worker, beside, cpus) or _shared_gpu(worker, beside)
        found.append(
            WorkerAffinity(
                name=str(worker["name"]),
                host=str(worker["host"]),
                allowed=spell(worker["allowed"]),
                expected=f">= {_expected(worker, cpus)}",
                numa=_numa(worker),
                gpu=str(worker.get("gpus") or "-").split(",")[0],
                why=why,
                note="" if why else _note(worker, beside),
            )
        )
    return found


def spell(cpus: Sequence[int]) -> str:
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
        return f"{len(inside)} workers with {threads} threads packed on {places} of {all_places} {word}"
    return ""


def _cores(worker: Facts, cpus: Sequence[int] | set[int]) -> int:
    return len({worker["cores"].get(str(cpu), cpu) for cpu in cpus})


def _shared_gpu(worker: Facts, beside: Sequence[Facts]) -> str:
    mine = str(worker.get("gpus") or "").split(",")[0]
    others = [str(one["name"]) for one in beside if str(one.get("gpus") or "").split(",")[0] == mine]
    return f"shares GPU {mine} with {', '.join(others)}" if mine and len(others) > 1 else ""


def _numa(worker: Facts) -> str:
    allowed = set(worker["allowed"])
    return ",".join(node for node, cpus in sorted(worker["numa"].items()) if allowed & set(cpus)) or "-"


def _note(worker: Facts, beside: Sequence[Facts]) -> str:
    threads = sum(int(one["threads"]) for one in beside)
    if threads > len(worker["cpus"]):
        return f"over-subscribed: {threads} threads on {len(worker['cpus'])} CPUs"
    return ""
