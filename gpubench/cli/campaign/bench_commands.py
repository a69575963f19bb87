"""Whole campaigns: ``bench``, ``resume``, ``advance``; and ``calibrate``: many, of a version against itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options
from gpubench.cli.campaign.calibrate_options import CalibrateOptions
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.declared import Make, with_options
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(with_options(bench))
    app.command()(resume)
    app.command()(advance)
    app.command()(with_options(calibrate))


def bench(
    *,
    campaign: Annotated[
        Path | None,
        typer.Option(help="Run only what is missing in this campaign.", autocompletion=completion.campaigns),
        Make(),
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 20 on a regression, 21 when something is undecided.")
    ] = False,
    asked: CampaignOptions,
) -> None:
    """Compare UCX versions: build images, plan, run, judge.

    Exits 0 when the campaign is complete, whatever the verdict; with --gate 20 or 21 by the verdict.
    """
    from gpubench.cli.campaign import lifecycle

    if campaign is not None:
        lifecycle.resume(campaign, gate=gate)
    else:
        lifecycle.bench(asked, gate=gate)


def resume(campaign: options.CampaignDir) -> None:
    """Run what is missing. Untouched blocks run again, and every broken one gets a whole new block."""
    from gpubench.cli.campaign import lifecycle

    lifecycle.resume(campaign, gate=False)


def advance(
    campaign: options.CampaignDir,
    stop: Annotated[bool, typer.Option("--stop", help="No further block: this look spends all that is left.")] = False,
) -> None:
    """Look at an adaptive campaign, and go on or end it. The next blocks that are still needed are run."""
    from gpubench.cli.campaign import lifecycle

    lifecycle.advance(campaign, stop=stop)


def calibrate(
    *,
    directory: Annotated[
        Path | None, typer.Argument(help="A calibration begun earlier: go on with it.", show_default=False)
    ] = None,
    campaigns: Annotated[int, typer.Option(min=1, help="So many in all.")] = 20,
    wishes: CalibrateOptions,
    outputs: options.Outputs = None,
) -> None:
    """Count the gate's false alarms on this site. Runs a version against itself, over tcp, many times.

    The rate is kept with the site, in ~/.local/state/gpubench/calibration/SITE.json, and shown in its reports. Ctrl-C
    keeps what was done.
    """
    from gpubench.cli.campaign import calibrate

    if directory is not None and (wishes != CalibrateOptions() or outputs is not None):
        raise UsageError(
            f"{directory} says what it runs, and options that say it are given too", then="only --campaigns may be"
        )
    calibrate.calibrate(directory or calibrate.begin(wishes, outputs), campaigns)
