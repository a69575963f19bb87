"""What `cluster start` was asked for."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from gpubench.cli import options
from gpubench.cli.campaign.options import CampaignOptions

MaybeTime = Annotated[str | None, typer.Option("--time", help="Time limit of the job, like 2h.")]
Wait = Annotated[str, typer.Option("--wait", help="How long to wait, in the queue too; it goes on after that.")]


@dataclasses.dataclass(frozen=True)
class ClusterOptions:
    """What the user asked for, and the options that ask for it; None where nothing was given."""

    site: options.Site = "local"
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the first job, which has the scheduler.")] = 1
    ucx: options.OneVariant = None
    name: Annotated[str | None, typer.Option(help="Name of the cluster; default: site and time.")] = None
    protocol: Annotated[str | None, typer.Option(help="tcp, tls (with keys of its own) or ucx.")] = None
    time: MaybeTime = None
    workers: Annotated[int | None, typer.Option(min=1, help="Workers per node.")] = None
    wait: Wait = "10m"
    runtime: options.Runtime = None
    base: options.Base = None
    date: options.Date = None
    settings: options.Set = None
    outputs: options.Outputs = None

    @property
    def as_asked(self) -> CampaignOptions:
        """In the words of a campaign."""
        workers = [] if self.workers is None else [f"layout.workers={self.workers}"]
        settings = [*(self.settings or []), *workers]
        return CampaignOptions(site=self.site, runtime=self.runtime, base=self.base, date=self.date, settings=settings)
