"""Which campaign?"""

from __future__ import annotations

from pathlib import Path

from gpubench.store.campaign import Campaign
from gpubench.store.outputs import newest_campaign


def chosen_campaign(directory: Path | None, outputs: Path | None) -> Campaign:
    """The named campaign, else the newest below ``outputs``; raises UsageError."""
    return Campaign.open(directory or newest_campaign(outputs or Path("outputs")))
