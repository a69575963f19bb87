"""Where scheduler and client of a run are, which launcher can do this, and how PBS is asked for nodes. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.launchers import LAUNCHERS
from gpubench.model.site import Site
from gpubench.node.workloads.catalogue import CATALOGUE, Workload


def check_placement(site: Site, device: str) -> None:
    """Raise PlanRefusedError unless scheduler, client and jobs can be as the profile wants them."""
    scheduler, client = site.layout.scheduler, site.layout.client
    apart = [
        f"layout.{name} = {place}" for name, place in (("scheduler", scheduler), ("client", client)) if place != "rank0"
    ]
    launcher = LAUNCHERS[site.launcher]
    if apart and not launcher.has_launch_node:
        able = [name for name in LAUNCHERS if LAUNCHERS[name].has_launch_node]
        raise PlanRefusedError(
            f"site {site.name}: {' and '.join(apart)}: {site.launcher} has no launch node and no resource sets",
            then=f"rank0, or a launcher that has them: {', '.join(able)}",
        )
    if client == "launch-node" and scheduler != "launch-node":
        raise PlanRefusedError(
            f"site {site.name}: the client can be on the launch node with the scheduler only, which is on {scheduler}",
            then="--set layout.scheduler=launch-node, or layout.client=rank0",
        )
    if client == "launch-node" and device != "cpu":
        raise PlanRefusedError(
            f"site {site.name}: layout.client = launch-node, device = {device}: a client of GPU workers needs a GPU, "
            "and a launch node has none",
            then="--set layout.client=rank0",
        )
    if site.launch.options and not launcher.takes_options:
        raise PlanRefusedError(
            f"site {site.name}: launch.options = {site.launch.options}: launcher {site.launcher} takes none",
            then="leave them out",
        )
    if not site.batch.select and (not site.node.cores or site.batch.constraint):
        why = "batch.constraint is a part of -l select" if site.node.cores else "node.cores isn't set"
        raise PlanRefusedError(f"site {site.name}: batch.select = false, and {why}", then="correct the site file")


UNPICKLES = (2023, 4)
"""Since this version Dask's scheduler unpickles the graphs of collections; those of frames on GPUs hold cuDF objects
(https://github.com/dask/distributed/pull/7564)."""


def check_graphs(site: Site, device: str, workloads: Iterable[str], manifests: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise PlanRefusedError where a scheduler without a GPU would have to make cuDF objects.

    Args:
        workloads: names of those that are planned.
        manifests: of the images that are known, by UCX spec.
    """
    place = site.layout.scheduler
    frames = [name for name in workloads if name in CATALOGUE and _is_of_frames(CATALOGUE[name])]
    if place == "rank0" or device != "gpu" or not frames:
        return
    for spec, manifest in manifests.items():
        version = str(manifest["stack"]["packages"].get("dask", ""))
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers >= UNPICKLES:
            raise PlanRefusedError(
                f"site {site.name}: layout.scheduler = {place} has no GPU, and Dask {version} (of {spec}) unpickles "
                f"the graphs of {', '.join(frames)} in the scheduler, which makes cuDF objects there",
                then="--set layout.scheduler=rank0, or a suite of arrays",
            )


def _is_of_frames(workload: Workload) -> bool:
    return workload.family == "dataframe" or workload.name.startswith("weak-frame")
