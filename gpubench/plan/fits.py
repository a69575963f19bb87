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
    for shape in shapes:
        for one in workloads:
            _check(one, shape, worker_memory(site, shape, limit, device))


def worker_memory(site: Site, shape: Shape, limit: int, device: str) -> int:
    """Bytes that a worker has for its data; 0: not known. ``limit`` as in ``check_fits``."""
    return (site.node.gpu_memory or 0) * site.node.gpus // shape.workers_per_node if device == "gpu" else limit


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
