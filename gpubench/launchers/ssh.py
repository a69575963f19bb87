"""Launcher ``ssh``: from the job script's node to the others by ssh, where ``srun`` starts nothing on them.

Hosts come from the scheduler. What a supervisor is to do, and its environment, travel down its standard input: no other
user reads them in the process table, and no login shell has to understand them. That line stays open; its end, however
the script ends, ends the supervisor.
"""

from gpubench.launchers.base import GRACE_S, Launcher
from gpubench.model.site import Site


class Ssh(Launcher):
    """See the module."""

    def shape(self, site: Site) -> list[str]:
        """Seconds that the others may take when rank 0 has ended: by itself, and when the job is told to end."""
        return [str(int(2 * site.limits.stop + GRACE_S)), str(int(site.limits.stop))]
