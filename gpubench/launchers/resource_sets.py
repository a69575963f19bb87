"""jsrun's resource sets: what a step asks for, what a node then has to give, and what is refused. Pure.

A resource set holds cores and GPUs of one host; all sets of a step are alike. jsrun packs as many sets on a host as fit
unless it is told how many, and binds every task to one core (``packed:1``) unless it is told otherwise: a worker with
many threads then runs on a single core, without a warning.
https://docs.olcf.ornl.gov/systems/summit_user_guide.html (Resource Sets; jsrun Options)
"""

import dataclasses
from collections.abc import Mapping, Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.base import nearest
from gpubench.model.site import Site
from gpubench.model.text import counted


def set_per_node(site: Site) -> dict[str, str]:
    """jsrun's options for one resource set per node that holds all of its cores and GPUs, as the profile changes them.

    A scheduler in a set of its own gets one of the node's cores; those that are left are the ones near the GPUs.
    """
    node, own = site.node, site.layout.scheduler == "own-set"
    near_gpus = {"latency_priority": "gpu-cpu"} if own and node.gpus else {}
    return {**_set(node.cores - own, node.gpus, **near_gpus), **parse(site.launch.options)}


def _set(cores: int, gpus: int, **more: str) -> dict[str, str]:
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
    """The arithmetic of a job's steps, ``workers`` on each node; raises PlanRefusedError."""
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
        steps.append(ResourceSetStep.of("the scheduler", {"nrs": "1", **_set(1, 0)}))
    threads = workers * site.layout.threads
    return check_steps(steps, nodes=nodes, cores=site.node.cores, gpus=site.node.gpus, threads=threads)


SHORT = {
    "-n": "nrs",
    "-r": "rs_per_host",
    "-a": "tasks_per_rs",
    "-c": "cpu_per_rs",
    "-g": "gpu_per_rs",
    "-b": "bind",
    "-d": "launch_distribution",
    "-l": "latency_priority",
    "-m": "memory_per_rs",
    "-S": "smpiargs",
    "-e": "stdio_mode",
    "-o": "stdio_stdout",
    "-k": "stdio_stderr",
    "-X": "exit_on_error",
}
"""jsrun's options that say something about a step, by their short names; each takes a value."""
DEFAULT_BIND = "packed:1"


@dataclasses.dataclass(frozen=True)
class ResourceSetStep:
    """One jsrun: equal ``sets``, at most ``per_host`` on a host (0: as many as fit), each with these resources."""

    what: str
    sets: int
    per_host: int
    tasks: int
    cores: int
    gpus: int
    bind: str

    @classmethod
    def of(cls, what: str, settings: Mapping[str, str]) -> "ResourceSetStep":
        """From options by their long names; a count that isn't given is 1, of GPUs 0.

        Raises:
            PlanRefusedError: a count is no number.
        """

        def count(name: str, default: int) -> int:
            text = settings.get(name, str(default))
            if not text.isdigit():
                raise PlanRefusedError(f"jsrun --{name}={text}: that is no number", then="write it like 6")
            return int(text)

        return cls(
            what=what,
            sets=count("nrs", 1),
            per_host=count("rs_per_host", 0),
            tasks=count("tasks_per_rs", 1),
            cores=count("cpu_per_rs", 1),
            gpus=count("gpu_per_rs", 0),
            bind=settings.get("bind", DEFAULT_BIND),
        )


def parse(arguments: Sequence[str]) -> dict[str, str]:
    """jsrun's options by their long names, a later one in place of an earlier; raises PlanRefusedError."""
    options: dict[str, str] = {}
    left = list(arguments)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith("--") and len(name) > 2 and name[:2] in SHORT:  # -n4, -brs
            name, equals, value = word[:2], "=", word[2:]
        long = SHORT.get(name, name.removeprefix("--"))
        if not name.startswith("-") or long not in SHORT.values():
            raise PlanRefusedError(
                f"jsrun has no option '{word}'{nearest(long, SHORT.values())}", then="correct launch.options"
            )
        if not equals:
            if not left:
                raise PlanRefusedError(f"jsrun {word} takes a value", then="correct launch.options")
            value = left.pop(0)
        options[long] = value
    return options


def check_steps(steps: Sequence[ResourceSetStep], *, nodes: int, cores: int, gpus: int, threads: int) -> list[str]:
    """The arithmetic of steps that run side by side, a line each; the first one's tasks have ``threads`` threads.

    Args:
        steps: all of them may lie on one node: the one that has most to give is counted.
        nodes: of the job, without the launch node.
        cores: of a node, which jobs may use.
        threads: that the processes of the first step's tasks use.

    Raises:
        PlanRefusedError: a node has less, the sets don't fit on the nodes, or the binding would squeeze threads.
    """
    lines, used = [], {"cores": 0, "GPUs": 0}
    for step in steps:
        fitting = min(cores // step.cores if step.cores else cores, gpus // step.gpus if step.gpus else step.sets)
        on_host = step.per_host or max(1, min(step.sets, fitting))
        if step.sets > on_host * nodes:
            raise PlanRefusedError(
                f"{step.what}: {step.sets} resource sets, {on_host} per node on {nodes} nodes are {on_host * nodes}",
                then="fewer sets (-n), or more of them per node (-r)",
            )
        on_host = min(on_host, step.sets)
        used["cores"] += on_host * step.cores
        used["GPUs"] += on_host * step.gpus
        lines.append(
            f"{step.what}: {counted(on_host, 'set')} per node x "
            f"{counted(step.cores, 'core')} and {counted(step.gpus, 'GPU')} = "
            f"{counted(on_host * step.cores, 'core')} and {counted(on_host * step.gpus, 'GPU')}"
        )
    for what, has in (("cores", cores), ("GPUs", gpus)):
        if used[what] > has:
            raise PlanRefusedError(
                f"a node has {has} {what}, and the job's resource sets want {used[what]} ({'; '.join(lines)})",
                then="fewer sets per node (-r), or smaller ones (-c, -g)",
            )
    _check_binding(steps[0], threads)
    return lines


def _check_binding(step: ResourceSetStep, threads: int) -> None:
    """A task needs a core for every thread of its processes: all of its set's, unless each has its own part of them."""
    if step.bind in ("rs", "none"):
        gets = step.cores if step.bind == "rs" else threads
    elif step.bind.startswith("packed:") and step.bind.removeprefix("packed:").isdigit():
        gets = int(step.bind.removeprefix("packed:"))
    else:
        raise PlanRefusedError(f"jsrun --bind={step.bind}: there is rs, none and packed:N", then="take --bind=rs")
    if threads > gets:
        trap = ", jsrun's default," if step.bind == DEFAULT_BIND else ""
        raise PlanRefusedError(
            f"--bind={step.bind}{trap} gives a task {gets} of its set's {step.cores} cores, "
            f"and its processes have {threads} threads",
            then="--bind=rs gives every task all cores of its set" if step.bind != "rs" else "more cores per set (-c)",
        )
