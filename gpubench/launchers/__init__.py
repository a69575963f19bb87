"""Launchers: each starts one supervisor on every node of a job."""

from gpubench.launchers.base import Launcher
from gpubench.launchers.resource_sets import check_resource_sets, set_per_node
from gpubench.model.site import Site

GRACE_S = 30
"""Seconds for the other supervisors beyond twice the site's limit for a stop: they leave by themselves."""


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

__all__ = ["LAUNCHERS", "Launcher"]
