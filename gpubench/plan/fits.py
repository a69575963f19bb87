"""Does a workload fit the site? Refused with the arithmetic before a node-hour is spent on finding out."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.spec import WorkloadSpec
from gpubench.workloads.catalogue import CATALOGUE, Shape


def check_fits(site: Site, workloads: Sequence[WorkloadSpec], shapes: Sequence[Shape], limit: int, device: str) -> None:
    """Every workload has the workers and the memory that it needs, on every planned cluster.

    Args:
        limit: bytes per worker of a node's memory; 0: not known, and not checked. GPU memory comes from the profile
            (``node.gpu_memory``), and isn't checked where it doesn't say.

    Raises:
        PlanRefusedError: one doesn't fit.
    """
    pool = site.layout.rmm_pool
    if isinstance(pool, int) and device == "cpu":
        raise PlanRefusedError(
            "layout.rmm_pool is a pool of GPU memory, and workers run on the cpu", then="--set layout.rmm_pool=default"
        )
    for shape in shapes:
        per_gpu = (site.node.gpu_memory or 0) * site.node.gpus // shape.workers_per_node
        if isinstance(pool, int) and per_gpu and pool > per_gpu:
            raise PlanRefusedError(
                f"a memory pool of {format_bytes(pool)} doesn't fit: a worker has {format_bytes(per_gpu)} on its GPU",
                then="a smaller layout.rmm_pool",
            )
        per_worker = limit
        if device == "gpu":
            per_worker = per_gpu
        for one in workloads:
            _check(one, shape, per_worker)


def _check(one: WorkloadSpec, shape: Shape, limit: int) -> None:
    known = CATALOGUE[one.name]
    cluster = f"{shape.nodes} nodes x {shape.workers_per_node} workers"
    if shape.workers < known.least_workers:
        raise PlanRefusedError(
            f"{one.name} needs at least {known.least_workers} workers: {cluster} are {shape.workers}",
            then=f"--workers {known.least_workers}, more nodes, or a suite without it",
        )
    held = known.held(one.params, shape)
    if limit and held > limit:
        raise PlanRefusedError(
            f"{one.name} doesn't fit {cluster}: a worker holds up to {format_bytes(held)} "
            f"({known.held_text}) and has {format_bytes(limit)}",
            then="a smaller "
            + ", ".join(name for name, _ in known.grows)
            + ", fewer workers per node, more nodes where the size is fixed, or layout.memory if the node has more",
        )
