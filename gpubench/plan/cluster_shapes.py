"""Where a campaign runs: node counts times workers per node, and what fits there.

What doesn't fit is refused with the arithmetic before a node-hour is spent on finding out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpubench.errors import PlanRefusedError
from gpubench.model.quantities import format_bytes
from gpubench.plan.bounds import check_worker_memory
from gpubench.plan.jobs import ClusterShape
from gpubench.plan.turns import interleaved
from gpubench.spec import WorkloadSpec
from gpubench.workloads.catalogue import Shape, described

BEFORE_SPILLING = 0.6
"""Share of its memory limit up to which a worker keeps everything in memory (``distributed.worker.memory.target``)."""

if TYPE_CHECKING:
    from gpubench.plan.make import Request


def plan_cluster_shapes(request: Request) -> tuple[list[ClusterShape], list[str]]:
    """Every place of the campaign in the order of its jobs, and what is left out at some of them and why.

    GPU memory comes from the profile (``node.gpu_memory``) and isn't checked where it doesn't say; nor is a node's
    memory that nobody here knows.

    Raises:
        PlanRefusedError: a workload doesn't fit, or nothing is left to measure at a place.
    """
    layout = request.site.layout
    _check_pool(request)
    rooms: list[ClusterShape] = []
    notes: dict[str, list[str]] = {}
    for nodes in request.nodes:
        for workers in request.workers or [layout.workers]:
            shape = Shape(nodes, workers, layout.threads)
            limit = _memory_limit(request, workers)
            if request.machine_memory or layout.memory is not None:
                check_worker_memory(limit, workers)
            enough = [item for item in request.workloads if shape.workers >= described(item.name).least_workers]
            for item in enough:
                check_memory(item, shape, worker_memory(request, workers), request.device)
            for item in request.workloads:
                if item not in enough:
                    notes.setdefault(_too_few(item), []).append(_words(shape))
            if not enough:
                raise PlanRefusedError(
                    f"nothing can be measured on {_words(shape)}: {_too_few(request.workloads[0])}",
                    then="more --workers or --nodes, or another suite",
                )
            rooms.append(ClusterShape((nodes, workers), limit, [item.params_id for item in enough]))
    return rooms, [f"{why}: left out on {', '.join(places)}" for why, places in notes.items()]


def worker_memory(request: Request, workers: int) -> int:
    """Bytes that each of a node's ``workers`` has for its data: of its GPU, where it has one; 0: nobody here knows."""
    return _device_memory(request, workers) if request.device == "gpu" else _memory_limit(request, workers)


def _memory_limit(request: Request, workers: int) -> int:
    """Bytes per worker; 0: half of the node's over its workers, worked out on the node."""
    layout = request.site.layout
    sharing = workers * clusters_at_once(request)
    if layout.memory is not None:
        return layout.memory // sharing
    return request.machine_memory // 2 // (sharing * (max(request.nodes) if layout.one_machine else 1))


def _device_memory(request: Request, workers: int) -> int:
    node = request.site.node
    return (node.gpu_memory or 0) * node.gpus // (workers * clusters_at_once(request))


def clusters_at_once(request: Request) -> int:
    """How many clusters are alive on a node at the same time: all of a block's, where it is interleaved."""
    return len(request.variants) if interleaved(request.site) else 1


def _check_pool(request: Request) -> None:
    pool = request.site.layout.rmm_pool
    if not isinstance(pool, int):
        return
    if request.device == "cpu":
        raise PlanRefusedError(
            "layout.rmm_pool is a pool of GPU memory, and workers run on the cpu", then="--set layout.rmm_pool=default"
        )
    for workers in request.workers or [request.site.layout.workers]:
        has = _device_memory(request, workers)
        if has and pool > has:
            raise PlanRefusedError(
                f"a memory pool of {format_bytes(pool)} doesn't fit: a worker has {format_bytes(has)} on its GPU",
                then="a smaller layout.rmm_pool",
            )


def check_memory(item: WorkloadSpec, shape: Shape, memory: int, device: str) -> None:
    """A worker with ``memory`` bytes (0: not known, and not checked) can hold what the workload wants it to.

    Raises:
        PlanRefusedError: it can't.
    """
    known = described(item.name)
    held = known.held(item.params, shape)
    share = 1.0 if device == "gpu" else BEFORE_SPILLING
    if memory and held > share * memory:
        smaller = ", ".join(name for name, _ in known.grows)
        less = "" if device == "gpu" else f", {100 * share:.0f} % of which it uses before it spills to disk"
        raise PlanRefusedError(
            f"{item.name} doesn't fit on {_words(shape)}: a worker has {format_bytes(memory)}{less}, and holds up to "
            f"{format_bytes(held)} ({known.held_text})",
            then=f"a smaller {smaller}, fewer workers per node, or layout.memory if the node has more",
        )


def check_workers(item: WorkloadSpec, shape: Shape) -> None:
    """There are as many workers as it needs.

    Raises:
        PlanRefusedError: there aren't.
    """
    if shape.workers < described(item.name).least_workers:
        raise PlanRefusedError(f"{_too_few(item)}: there are {_words(shape)}", then="more workers, or another workload")


def _too_few(item: WorkloadSpec) -> str:
    return f"{item.name} needs at least {described(item.name).least_workers} workers"


def _words(shape: Shape) -> str:
    nodes = f"{shape.nodes} node{'' if shape.nodes == 1 else 's'}"
    return f"{nodes} x {shape.workers_per_node} worker{'' if shape.workers_per_node == 1 else 's'}"
