"""Whether the workers of a cluster have enough memory for its workloads.

A request that doesn't fit is refused with the arithmetic before node-hours are spent. Pure.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.model.quantities import format_bytes, spell_bytes
from gpubench.model.text import counted
from gpubench.node.workloads.catalogue import Shape, Workload
from gpubench.plan.block_design import ClusterShape, interleaved
from gpubench.plan.request import Request

LEAST_MEMORY = 64 * 2**20
"""Bytes; a worker has used them when it has imported dask."""
BEFORE_SPILLING = {"cpu": 0.6, "gpu": 0.8}
"""Share of its memory up to which a worker keeps everything there, by device: ``distributed.worker.memory.target``, and
``dask cuda worker --device-memory-limit``."""
CONTEXTS_BYTES = 2 * 10**9
"""What CUDA takes of a node's first GPU: contexts of its worker, nanny, client and scheduler. Of an H100 503 MB were
used without any, and each takes about as much."""


def check_worker_memory(limit: int, workers: int) -> None:
    """Each of a node's ``workers`` has enough to start with in ``limit`` bytes; raises PlanRefusedError."""
    if limit < LEAST_MEMORY:
        raise PlanRefusedError(
            f"{workers} workers per node have {format_bytes(limit)} each, and none starts with less than "
            f"{spell_bytes(LEAST_MEMORY)}",
            then="fewer workers, or more layout.memory",
        )


def plan_cluster_shapes(request: Request, described: Sequence[Workload]) -> tuple[list[ClusterShape], list[str]]:
    """Every place of the campaign in the order of its jobs, and what is left out at some of them and why.

    GPU memory comes from the profile (``node.gpu_memory``) and isn't checked if the profile lacks it. Nor is a node's
    memory if it is unknown. ``described`` is what is known of each workload.

    Raises:
        PlanRefusedError: a workload doesn't fit, or nothing is left to measure at a place.
    """
    layout = request.site.layout
    _check_pool(request)
    shapes: list[ClusterShape] = []
    notes: dict[str, list[str]] = {}
    for nodes, workers in itertools.product(request.nodes, request.workers or [layout.workers]):
        shape = Shape(nodes, workers, layout.threads)
        limit = _memory_limit(request, workers)
        if request.machine_memory or layout.memory is not None:
            check_worker_memory(limit, workers)
        enough = []
        for item, workload in zip(request.workloads, described, strict=True):
            if shape.workers >= workload.least_workers:
                check_memory(workload, item.params, shape, worker_memory(request, workers), request.device)
                _check_pool_holds(workload, item.params, shape, layout.rmm_pool)
                enough.append(item.params_id)
            else:
                notes.setdefault(_too_few(workload), []).append(_shape_text(shape))
        if not enough:
            raise PlanRefusedError(
                f"nothing can be measured on {_shape_text(shape)}: {_too_few(described[0])}",
                then="more --workers or --nodes, or another suite",
            )
        shapes.append(ClusterShape((nodes, workers), limit, enough))
    return shapes, [f"{why}: left out on {', '.join(places)}" for why, places in notes.items()]


def worker_memory(request: Request, workers: int) -> int:
    """Bytes that each of a node's ``workers`` has for its data: of its GPU, if it has one; 0: unknown."""
    return _device_memory(request) if request.device == "gpu" else _memory_limit(request, workers)


def _memory_limit(request: Request, workers: int) -> int:
    """Bytes per worker; 0: half of the node's over its workers, worked out on the node."""
    layout = request.site.layout
    sharing = workers * clusters_at_once(request)
    if layout.memory is not None:
        return layout.memory // sharing
    return request.machine_memory // 2 // (sharing * (max(request.nodes) if layout.one_machine else 1))


def _device_memory(request: Request) -> int:
    """Bytes of a worker's GPU, which is its own whether or not its node has others; 0: unknown.

    Clusters that are alive at the same time have the same GPUs, and so have nodes that are one machine.
    """
    sharing = clusters_at_once(request) * (max(request.nodes) if request.site.layout.one_machine else 1)
    return (request.site.node.gpu_memory or 0) // sharing


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
    has = _device_memory(request)
    if has and pool > has - CONTEXTS_BYTES:
        raise PlanRefusedError(
            f"a memory pool of {format_bytes(pool)} doesn't fit: a worker has {format_bytes(has)} on its GPU, of "
            f"which CUDA itself takes up to {format_bytes(CONTEXTS_BYTES)}",
            then="a smaller layout.rmm_pool",
        )


def _check_pool_holds(workload: Workload, params: Mapping[str, Any], shape: Shape, pool: int | str) -> None:
    """Raise PlanRefusedError where a pool would have to grow: that fails a run, whose next workload has another one."""
    held = workload.held(params, shape)
    if isinstance(pool, int) and held > pool:
        raise PlanRefusedError(
            f"{workload.name} doesn't fit on {_shape_text(shape)}: a worker's memory pool has {format_bytes(pool)}, "
            f"and it holds up to {format_bytes(held)} ({workload.held_text})",
            then=f"a larger layout.rmm_pool, or a smaller {', '.join(name for name, _ in workload.grows)}",
        )


def check_memory(workload: Workload, params: Mapping[str, Any], shape: Shape, memory: int, device: str) -> None:
    """Raise PlanRefusedError unless a worker can hold what the workload wants in ``memory`` bytes (0: not known)."""
    held = workload.held(params, shape)
    share = BEFORE_SPILLING.get(device, BEFORE_SPILLING["cpu"])
    if memory and held > share * memory:
        grows = ", ".join(name for name, _ in workload.grows)
        smaller = f"a smaller {grows}, " if grows else ""
        place = "main memory" if device == "gpu" else "disk"
        less = f", {100 * share:.0f} % of which it uses before it spills to {place}"
        raise PlanRefusedError(
            f"{workload.name} doesn't fit on {_shape_text(shape)}: a worker has {format_bytes(memory)}{less}, and "
            f"holds up to {format_bytes(held)} ({workload.held_text})",
            then=f"{smaller}fewer workers per node, or layout.memory if the node has more",
        )


def _too_few(workload: Workload) -> str:
    return f"{workload.name} needs at least {workload.least_workers} workers"


def _shape_text(shape: Shape) -> str:
    return f"{counted(shape.nodes, 'node')} x {counted(shape.workers_per_node, 'worker')}"
