"""Whether each worker of a cluster is where it has to be. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.model.text import counted
from gpubench.node.spec import near_gpu
from gpubench.node.spec.near_gpu import cpu_list

ProcessFacts = Mapping[str, Any]
"""The report of a worker's own thread (``placed`` in ``node/inspect_process.py``), with address, name and threads."""


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


def judge_affinity(workers: Sequence[ProcessFacts], cpus: int | None = None) -> list[WorkerAffinity]:
    """A verdict per worker.

    A worker must be allowed at least as many CPUs as it has threads (``cpus`` says another number), and all workers
    inside a set of CPUs must find as many there as they have threads together: jsrun's default ``packed:1`` puts six
    on one core, where each alone has CPUs enough. The set is counted in cores (not hyper-threads) wherever the machine
    has a core for every thread; otherwise that is only reported. Two workers may not share a GPU, nor be bound to other
    CPUs than a run's worker must be (``near_gpu``); one that isn't bound is only reported.
    """
    affinities = []
    for worker in workers:
        if "allowed" not in worker:
            affinities.append(WorkerAffinity(str(worker["name"]), "?", "?", "", "", "", str(worker["error"])))
            continue
        beside = [
            neighbour for neighbour in workers if neighbour.get("host") == worker["host"] and "allowed" in neighbour
        ]
        gpu = gpu_of(worker)
        sharing = [str(neighbour["name"]) for neighbour in beside if gpu_of(neighbour) == gpu]
        shared = f"shares GPU {gpu} with {', '.join(sharing)}" if gpu and len(sharing) > 1 else ""
        unlike, unbound = _unlike_a_run(worker)
        why = _too_few(worker, beside, cpus) or shared or unlike
        threads, allowed_cpus = sum(int(neighbour["threads"]) for neighbour in beside), len(worker["cpus"])
        affinities.append(
            WorkerAffinity(
                name=str(worker["name"]),
                host=str(worker["host"]),
                allowed=cpu_list(worker["allowed"]),
                expected=f">= {_expected(worker, cpus)}",
                numa=",".join(node for node, near in sorted(worker["numa"].items()) if {*near} & {*worker["allowed"]})
                or "-",
                gpu=gpu or "-",
                why=why,
                note=f"more threads than CPUs: {threads} threads on {allowed_cpus} CPUs"
                if threads > allowed_cpus and not why
                else unbound,
            )
        )
    return affinities


def _unlike_a_run(worker: ProcessFacts) -> tuple[str, str]:
    """Why a GPU worker's CPUs would fail a run, and what is only worth knowing of them."""
    if "gpu" not in worker:
        return "", ""
    place = worker["gpu"]
    wrong = near_gpu.misplaced(place, worker["allowed"])
    if wrong and {*worker["allowed"]} >= {*place["step"]}:
        return "", f"not bound to CPUs {cpu_list(near_gpu.expected(place))} near GPU {place['device']}"
    return wrong, ""


def _expected(worker: ProcessFacts, cpus: int | None) -> int:
    return cpus or min(int(worker["threads"]), len(worker["cpus"]))


def _too_few(worker: ProcessFacts, beside: Sequence[ProcessFacts], cpus: int | None) -> str:
    allowed, expected = set(worker["allowed"]), _expected(worker, cpus)
    if len(allowed) < expected:
        has = f"{len(allowed)} CPUs for {expected} threads" if cpus is None else f"{len(allowed)} of {cpus} CPUs"
        return f"{has}: bound too tightly (jsrun --bind rs, OMP_PROC_BIND=FALSE)"
    inside = [neighbour for neighbour in beside if set(neighbour["allowed"]) <= allowed]
    threads = sum(_expected(neighbour, cpus) for neighbour in inside)
    on_host = sum(_expected(neighbour, cpus) for neighbour in beside)
    places, all_places = (
        (_cores(worker, allowed), _cores(worker, worker["cpus"]))
        if _cores(worker, worker["cpus"]) >= on_host
        else (len(allowed), len(worker["cpus"]))
    )
    if threads > places and places < all_places:
        word = "cores" if all_places != len(worker["cpus"]) else "CPUs"
        need = f"with {threads} threads" if cpus is None else f"for {threads} CPUs"
        return f"{counted(len(inside), 'worker')} {need} packed on {places} of {all_places} {word}"
    return ""


def _cores(worker: ProcessFacts, cpus: Sequence[int] | set[int]) -> int:
    return len({worker["cores"].get(str(cpu), cpu) for cpu in cpus})


def gpu_of(worker: ProcessFacts) -> str:
    """The first GPU that it sees; empty without one."""
    return str(worker.get("gpus") or "").split(",")[0]
