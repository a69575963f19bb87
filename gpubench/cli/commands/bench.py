"""``gpubench bench``: plan, run, judge and report in one command; ``gpubench resume``: only what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import options
from gpubench.cli.options import Asked
from gpubench.cli.planned import planning_options


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(planning_options(bench))
    app.command()(resume)
    app.command()(advance)


def bench(
    asked: Asked,
    campaign: Annotated[Path | None, typer.Option(help="Run only what is missing in this campaign.")] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 20 on a regression, 21 when something is undecided.")
    ] = False,
) -> None:
    """Compare UCX versions for real: build images, plan, run, judge, report.

    Exits 0 when the campaign is complete, whatever the verdict; with --gate 20 or 21 by the verdict.
    """
    from gpubench.cli.steps import whole

    if campaign is not None:
        whole.resume(campaign, gate=gate)
    else:
        whole.bench(asked, gate=gate)


def resume(campaign: options.CampaignDir) -> None:
    """Run what is missing: untouched blocks again, a whole new block for every broken one."""
    from gpubench.cli.steps import whole

    whole.resume(campaign, gate=False)


def advance(
    campaign: options.CampaignDir,
    stop: Annotated[bool, typer.Option("--stop", help="No further block: this look spends all that is left.")] = False,
) -> None:
    """An adaptive campaign: look at what is there; run the next blocks that are still needed, or end it."""
    from gpubench.cli.steps import whole

    whole.advance(campaign, stop=stop)
