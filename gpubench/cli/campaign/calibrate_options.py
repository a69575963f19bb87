"""What `calibrate` was asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.model.bounds import MOST_BLOCKS

A, B = "a", "b"


@dataclasses.dataclass(frozen=True)
class CalibrateOptions:
    """What is run again and again; kept in the directory, so that a second call goes on with the same."""

    site: options.Site = "local"
    suite: Annotated[str, typer.Option(help="Suite in suites/, or a .toml file.", autocompletion=completion.suites)] = (
        "calibrate"
    )
    slow: Annotated[
        str, typer.Option(help="Slow the candidate by this, like 5%, and count how often that is found.")
    ] = ""
    ucx: Annotated[
        str, typer.Option(help="UCX version; default: the profile's first.", autocompletion=completion.versions)
    ] = ""
    blocks: Annotated[int, typer.Option(min=1, max=MOST_BLOCKS, help="Blocks of each campaign.")] = 5
    seed: Annotated[int | None, typer.Option(help="Seed of the first campaign's order; each next one adds 1.")] = None
    settings: options.Set = None

    def asked(self, number: int, directory: Path) -> CampaignOptions:
        """As ``bench`` would be asked for campaign ``number``."""
        slowed = f",GPUBENCH_SLOW={self.slow}" if self.slow else ""
        return CampaignOptions(
            site=self.site,
            variants=f"{A}={self.ucx} {B}={self.ucx}{slowed}",
            suite=self.suite,
            blocks=str(self.blocks),
            protocol="tcp",
            seed=None if self.seed is None else self.seed + number,
            settings=self.settings,
            outputs=directory,
        )
