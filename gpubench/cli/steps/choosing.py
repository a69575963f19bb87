"""Which campaign?"""

from __future__ import annotations

from pathlib import Path

from gpubench.cli.options import Asked
from gpubench.errors import UsageError
from gpubench.store.campaign import Campaign
from gpubench.store.outputs import newest_campaign


def chosen_campaign(directory: Path | None, outputs: Path | None) -> Campaign:
    """The named campaign, else the newest below ``outputs``; raises UsageError."""
    return Campaign.open(directory or newest_campaign(outputs or Path("outputs")))


def only_one(campaign: Path | None, asked: Asked) -> None:
    """Raise UsageError where a planned campaign is named together with options that plan another."""
    if campaign is not None and asked != Asked():
        raise UsageError(
            f"{campaign} is planned already, and options that plan a campaign are given too",
            then="leave one of them out",
        )
