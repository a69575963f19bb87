"""Cores and memory of one node: the profile's, or this machine's where it is the site."""

import os

from gpubench.model.site import Site
from gpubench.node.spec.memory import usable_memory
from gpubench.schedulers import LOCAL


def cores_and_memory(site: Site) -> tuple[int, int]:
    """Cores and bytes of one node, 0 if unknown: the memory of a login node says nothing about it."""
    cores, memory = site.node.cores, site.node.memory or 0
    if site.layout.one_machine or site.scheduler in LOCAL:
        cores = cores or len(os.sched_getaffinity(0))
        memory = memory or usable_memory()
    return cores, memory
