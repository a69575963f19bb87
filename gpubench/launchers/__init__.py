"""How one supervisor per node is started: what every launcher says, and the one dict that names them."""

from gpubench.launchers.base import Launcher
from gpubench.launchers.jsrun import Jsrun
from gpubench.launchers.srun import Srun
from gpubench.launchers.ssh import Ssh

LAUNCHERS: dict[str, Launcher] = {
    "fork": Launcher("launchers/fork.sh.j2", "GPUBENCH_RANK"),  # all nodes are this machine
    # One pod per node, numbered by https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
    "indexed-job": Launcher("", "JOB_COMPLETION_INDEX"),
    "jsrun": Jsrun("launchers/jsrun.sh.j2", "JSM_NAMESPACE_RANK"),
    "srun": Srun("launchers/srun.sh.j2", "SLURM_NODEID"),
    "ssh": Ssh("launchers/ssh.sh.j2", "GPUBENCH_RANK"),
}

__all__ = ["LAUNCHERS", "Launcher"]
