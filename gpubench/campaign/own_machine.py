"""Cores and memory of one node: the profile's, or this machine's where it is the site."""

import os

from gpubench.model.site import Site
from gpubench.schedulers import LOCAL


def node_cores(site: Site) -> int:
    """Cores of one node; 0 if unknown."""
    if site.node.cores or not _is_this_machine(site):
        return site.node.cores
    return len(os.sched_getaffinity(0))


def node_memory(site: Site) -> int:
    """Bytes of one node; 0 if unknown: the memory of a login node says nothing about it."""
    if site.node.memory or not _is_this_machine(site):
        return site.node.memory or 0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _is_this_machine(site: Site) -> bool:
    return site.layout.one_machine or site.scheduler in LOCAL
