"""``gpubench prereqs``: what a cluster's administrator runs once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(prereqs)


def prereqs(
    site: Annotated[
        str,
        typer.Option(help="Profile in sites/, or a .toml file.", show_default=False, autocompletion=completion.sites),
    ],
    out: Annotated[Path | None, typer.Option(help="Where to write; default: outputs/prereqs/SITE.")] = None,
    settings: options.Set = None,
) -> None:
    """Write what prepares the nodes of a site. An Ansible playbook, and the conda environment of its stack.

    The playbook installs git, rsync, compilers, conda and, where there are GPUs, the CUDA toolkit, all in fixed
    versions, and makes the shared directory; run again, it changes nothing. Nothing is asked of any network here.
    """
    from gpubench.cli.sites.prereqs import write_prereqs
    from gpubench.cli.sites.profiles import load_site

    write_prereqs(load_site(site, settings), out)
