"""Launcher ``jsrun`` (IBM Job Step Manager): one resource set per compute node, from the script on a launch node.

Rank and node are the same: every set has one task, every node one set, and sets are handed out node by node.
https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=SSWRJV_10.1.0/jsm/jsm_kickoff.htm
"""

from gpubench.launchers.base import Launcher
from gpubench.model.site import Site
from gpubench.plan.placement import set_per_node


class Jsrun(Launcher):
    """See the module."""

    def shape(self, site: Site) -> list[str]:
        """The set of a node; the script adds ``--nrs``."""
        return [f"--{name}={value}" for name, value in set_per_node(site).items()]
