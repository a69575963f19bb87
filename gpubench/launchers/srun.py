"""Launcher ``srun``: one task on every node of the allocation."""

from gpubench.launchers.base import GRACE_S, Launcher
from gpubench.model.site import Site


class Srun(Launcher):
    """See the module."""

    def shape(self, site: Site) -> list[str]:
        """The whole of it in every step: srun since Slurm 22.05 doesn't inherit ``--cpus-per-task``.

        https://slurm.schedmd.com/archive/slurm-22.05.0/srun.html#OPT_cpus-per-task
        """
        node = site.node
        # A supervisor that fails must not end rank 0 before it has written what happened.
        wait = int(2 * site.limits.stop + GRACE_S)
        return [
            "--ntasks-per-node=1",
            *([f"--cpus-per-task={node.cores}"] if node.cores else []),
            *([f"--gpus-per-node={node.gpus}"] if node.gpus else []),
            "--kill-on-bad-exit=0",
            f"--wait={wait}",
            "--export=ALL",
        ]
