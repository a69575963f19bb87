"""One module per group of commands; each adds its own to the application."""

from __future__ import annotations

import typer

from gpubench.cli.commands import (
    archive,
    bench,
    clusters,
    export,
    fetch,
    images,
    node,
    prereqs,
    results,
    sites,
    stages,
    workloads,
)


def register(app: typer.Typer) -> None:
    """Add every command, in the order in which ``--help`` lists them."""
    bench.register(app)
    stages.register(app)
    workloads.register(app)
    clusters.register(app)
    fetch.register(app)
    results.register(app)
    archive.register(app)
    export.register(app)
    images.register(app)
    sites.register(app)
    prereqs.register(app)
    node.register(app)
