"""Launcher ``fork``: all nodes are this machine."""

from __future__ import annotations

from gpubench.model.site import Site

TEMPLATE = "launchers/fork.sh.j2"
RANK = "GPUBENCH_RANK"


def shape(site: Site) -> list[str]:  # noqa: ARG001 - there is nothing to shape
    """Nothing."""
    return []
