"""``gpubench fetch``: a campaign of another place, here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(fetch)


def fetch(
    site: options.NamedSite,
    campaign: Annotated[
        str,
        typer.Argument(
            help="Its name below fetch.path of the profile; or HOST:PATH, or a local path.", show_default=False
        ),
    ],
    outputs: Annotated[Path, typer.Option(help="Where the copy goes, below its own name.")] = Path("outputs"),
    settings: options.Set = None,
) -> None:
    """Bring a campaign home by rsync, or its copy up to date. Merge, compare and report work on it meanwhile.

    rsync must be installed at both ends, ssh must lead there without questions. Run it as often as you like.
    """
    from gpubench.cli.campaign.fetch import fetch as fetched
    from gpubench.cli.sites.profiles import load_site

    fetched(load_site(site, settings), campaign, outputs)
