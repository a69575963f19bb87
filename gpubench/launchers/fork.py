"""Launcher ``fork``: all nodes are this machine."""

from __future__ import annotations

from gpubench.model.site import Site

TEMPLATE = "launchers/fork.sh.j2"


def shape(site: Site) -> list[str]:  # noqa: ARG001 - there is nothing to shape
    """Nothing."""
    return []
