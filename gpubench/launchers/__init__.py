"""Launchers: how a job starts one supervisor on every node, and what a plan has to know of each."""

import dataclasses
from collections.abc import Callable

from gpubench.launchers.resource_sets import check_resource_sets, set_per_node
from gpubench.model.site import Site

GRACE_S = 30
"""Seconds for the other supervisors beyond twice the site's limit for a stop: they leave by themselves."""


@dataclasses.dataclass(frozen=True)
class Launcher:
    """An adapter to a command that starts one process on every node.

    Args:
        schedulers: names of those whose jobs it can start.
        template: shell below ``templates/`` that defines ``launch COMMAND...`` and ``write_record COMMAND...``, and
            handles signals; empty where the job is no script.
        rank: variable that tells a supervisor which node it is on; a container has to get it.
        shape: words that the template gets as ``step_shape``: what every step says about itself, or how long it takes.
        check_steps: of a site, a number of nodes and workers on each: the arithmetic of a job's steps, to be printed;
            raises PlanRefusedError where a node can't hold them.
        has_launch_node: the job's script runs on none of its nodes, and can start a step beside the supervisors'.
        takes_options: the command takes the further options of ``launch.options``.
        can_interleave: a node can have the supervisors of several runs at the same time.
        has_one_block: a job holds one block; with any other launcher as many as surely fit into its time limit.
        brings_files: jobs bring all their files along, and nodes need not see a directory of the machine that submits.
    """

    schedulers: tuple[str, ...]
    template: str
    rank: str
    shape: Callable[[Site], list[str]] = lambda _site: []
    check_steps: Callable[[Site, int, int], list[str]] = lambda _site, _nodes, _workers: []
    has_launch_node: bool = False
    takes_options: bool = False
    can_interleave: bool = False
    has_one_block: bool = False
    brings_files: bool = False


def _resource_set(site: Site) -> list[str]:
    """The set of a node; the script adds ``--nrs``.

    Rank and node are the same: every set has one task, every node one set, and sets are handed out node by node.
    https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=SSWRJV_10.1.0/jsm/jsm_kickoff.htm
    """
    return [f"--{name}={value}" for name, value in set_per_node(site).items()]


def _whole_allocation(site: Site) -> list[str]:
    """All of it in every step: srun since Slurm 22.05 doesn't inherit ``--cpus-per-task``.

    https://slurm.schedmd.com/archive/slurm-22.05.0/srun.html#OPT_cpus-per-task
    """
    node = site.node
    return [
        "--ntasks-per-node=1",
        *([f"--cpus-per-task={node.cores}"] if node.cores else []),
        *([f"--gpus-per-node={node.gpus}"] if node.gpus and site.batch.request_gpus else []),
        "--kill-on-bad-exit=0",
        # A supervisor that fails must not end rank 0 before it has written what happened.
        f"--wait={int(2 * site.limits.stop + GRACE_S)}",
        "--export=ALL",
    ]


def _end_times(site: Site) -> list[str]:
    """Seconds that the others may take when rank 0 has ended: by itself, and when the job is told to end."""
    return [str(int(2 * site.limits.stop + GRACE_S)), str(int(site.limits.stop))]


LAUNCHERS: dict[str, Launcher] = {
    # All nodes are this machine.
    "fork": Launcher(("local",), "launchers/fork.sh.j2", "GPUBENCH_RANK", can_interleave=True),
    # One pod per node, numbered by https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
    "indexed-job": Launcher(("kubernetes",), "", "JOB_COMPLETION_INDEX", has_one_block=True, brings_files=True),
    # IBM Job Step Manager: from the script on a launch node.
    "jsrun": Launcher(
        schedulers=("lsf",),
        template="launchers/jsrun.sh.j2",
        rank="JSM_NAMESPACE_RANK",
        shape=_resource_set,
        check_steps=check_resource_sets,
        has_launch_node=True,
        takes_options=True,
    ),
    "srun": Launcher(("slurm",), "launchers/srun.sh.j2", "SLURM_NODEID", _whole_allocation),
    # Where srun starts nothing on the other nodes. What a supervisor is to do, and its environment, travel down its
    # standard input: no other user reads them in the process table, and no login shell has to understand them. That
    # line stays open; its end, however the script ends, ends the supervisor.
    "ssh": Launcher(("pbs", "slurm"), "launchers/ssh.sh.j2", "GPUBENCH_RANK", _end_times),
}
