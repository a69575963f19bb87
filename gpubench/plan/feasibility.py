"""What a machine can have: bounds of counts, and of a network device's name. Pure."""

import re
from collections.abc import Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.site import Site
from gpubench.model.text import counted, visible

MOST_NODES = 65_536
"""Maximum of nodes: no cluster under one of the schedulers has more."""
MOST_ON_A_NODE = 4096
"""Workers times threads: hyper-threads of the largest nodes, and some more."""
LONGEST_INTERFACE = 15
"""Letters: IFNAMSIZ of Linux less its final zero."""
_INTERFACE = re.compile(r"[^\s/:]+")


def check_bounds(site: Site, nodes: Sequence[int], workers: Sequence[int]) -> None:
    """Raise PlanRefusedError unless the counts and the interface are possible ones."""
    if fault := interface_fault(site.interface):
        raise PlanRefusedError(f"site {site.name}: {fault}", then="--set interface=..., as `ip link` names it")
    check_counts(site, nodes, workers)
    gpus = site.node.gpus or 0
    if site.device != "cpu" and 0 < gpus < max(workers):
        raise PlanRefusedError(
            f"{max(workers)} workers per node, and {counted(gpus, 'GPU')} (node.gpus): a worker takes one GPU",
            then=f"--workers {gpus} at most, or correct node.gpus",
        )


def check_counts(site: Site, nodes: Sequence[int], workers: Sequence[int]) -> None:
    """Raise PlanRefusedError unless there are machines with so many nodes, and so many threads on each."""
    if max(nodes) > MOST_NODES:
        raise PlanRefusedError(f"{max(nodes)} nodes are more than any cluster has", then=f"at most {MOST_NODES}")
    threads = site.layout.threads
    if max(workers) * threads > MOST_ON_A_NODE:
        raise PlanRefusedError(
            f"{max(workers)} workers x {threads} threads are more than any node can run",
            then=f"fewer --workers or layout.threads, {MOST_ON_A_NODE} together at most",
        )


def interface_fault(name: str) -> str:
    """Why no network device can have that name; empty where one can."""
    if not _INTERFACE.fullmatch(name) or name in (".", "..") or visible(name) != name:
        return f"interface '{name}' can't be the name of a network device"
    if len(name.encode()) > LONGEST_INTERFACE:
        return f"interface '{name}' has more than {LONGEST_INTERFACE} letters, which no device has"
    return ""
