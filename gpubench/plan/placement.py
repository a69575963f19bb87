"""Where scheduler and client of a run are, which launcher can do this, and what its steps request."""

from __future__ import annotations

from collections.abc import Callable

from gpubench.errors import PlanRefusedError
from gpubench.model.site import Site
from gpubench.plan.resource_sets import ResourceSetStep, check_steps, parse

Settings = dict[str, str]


def set_per_node(site: Site) -> Settings:
    """jsrun's options for one resource set per node that holds all of its cores and GPUs, as the profile changes them.

    A scheduler in a set of its own gets one of the node's cores; those that are left are the ones near the GPUs.
    """
    node, own = site.node, site.layout.scheduler == "own-set"
    near_gpus = {"latency_priority": "gpu-cpu"} if own and node.gpus else {}
    return {**_set(node.cores - own, node.gpus, **near_gpus), **parse(site.launch.options)}


def own_set() -> Settings:
    """jsrun's options for the scheduler's own resource set."""
    return {"nrs": "1", **_set(1, 0)}


def _set(cores: int, gpus: int, **more: str) -> Settings:
    return {
        "rs_per_host": "1",
        "tasks_per_rs": "1",
        "cpu_per_rs": str(cores),
        "gpu_per_rs": str(gpus),
        "bind": "rs",
        **more,
        # Supervisors are no MPI programs: nothing of Spectrum MPI shall be set up around them.
        "smpiargs": "off",
        # A supervisor that fails must not end the others before they have said what happened.
        "exit_on_error": "0",
    }


def check_resource_sets(site: Site, nodes: int, workers: int) -> list[str]:
    """The arithmetic of a job on ``nodes`` nodes with ``workers`` on each; raises PlanRefusedError."""
    if not site.node.cores:
        raise PlanRefusedError(
            f"site {site.name}: {site.launcher} makes resource sets of a node's cores, and node.cores isn't set",
            then="--set node.cores=NUMBER: how many a job may use",
        )
    steps = [ResourceSetStep.of("the supervisors", {"nrs": str(nodes), **set_per_node(site)})]
    if steps[0].tasks * steps[0].sets != nodes:
        raise PlanRefusedError(
            f"site {site.name}: {steps[0].sets} resource sets of {steps[0].tasks} tasks for {nodes} nodes: "
            "every node has one supervisor, which starts its workers",
            then="leave -n and -a out of launch.options",
        )
    if site.layout.scheduler == "own-set":
        steps.append(ResourceSetStep.of("the scheduler", own_set()))
    threads = workers * site.layout.threads
    return check_steps(steps, nodes=nodes, cores=site.node.cores, gpus=site.node.gpus, threads=threads)


CHECKS: dict[str, Callable[[Site, int, int], list[str]]] = {"jsrun": check_resource_sets}
"""Launchers whose steps are computed from the shape of a node, with the function that checks them."""
APART = {"jsrun"}
"""Launchers whose script runs on a launch node, and that can start a step beside that of the supervisors."""
OPTIONS = {"jsrun"}
"""Launchers whose command takes further options."""


def check_placement(site: Site, device: str) -> None:
    """Raise PlanRefusedError unless scheduler and client can be where the profile wants them."""
    scheduler, client = site.layout.scheduler, site.layout.client
    apart = [
        f"layout.{name} = {place}" for name, place in (("scheduler", scheduler), ("client", client)) if place != "rank0"
    ]
    if apart and site.launcher not in APART:
        raise PlanRefusedError(
            f"site {site.name}: {' and '.join(apart)}: {site.launcher} has no launch node and no resource sets",
            then=f"rank0, or a launcher that has them: {', '.join(sorted(APART))}",
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
    if site.launch.options and site.launcher not in OPTIONS:
        raise PlanRefusedError(
            f"site {site.name}: launch.options = {site.launch.options}: launcher {site.launcher} takes none",
            then="leave them out",
        )


def check_steps_of(site: Site, nodes: int, workers: int) -> list[str]:
    """The arithmetic of a job's steps in lines, if any; raises PlanRefusedError where a node can't give it."""
    check = CHECKS.get(site.launcher)
    return check(site, nodes, workers) if check else []
