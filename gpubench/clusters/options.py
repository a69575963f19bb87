"""Options of standing clusters."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from gpubench.campaign.options import (
    AllowUnknownEnv,
    Base,
    CampaignOptions,
    Date,
    OneVariant,
    Outputs,
    Runtime,
    Set,
    Site,
)

Name = Annotated[
    str | None, typer.Argument(help="Name of the cluster; default: the only one that exists.", show_default=False)
]
MaybeTime = Annotated[str | None, typer.Option("--time", help="Time limit of the job, like 2h.")]
Wait = Annotated[
    str,
    typer.Option(
        "--wait",
        help="How long to wait, also in a queue of jobs; there, what was asked for happens even if it takes longer. On "
        "the local site, nothing is started after that time.",
    ),
]


@dataclasses.dataclass(frozen=True)
class ClusterOptions:
    """The options of a new cluster; None for an option that was not given."""

    site: Site = "local"
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the first job, which has the scheduler.")] = 1
    ucx: OneVariant = None
    name: Annotated[str | None, typer.Option(help="Name of the cluster; default: site and time.")] = None
    protocol: Annotated[str | None, typer.Option(help="tcp, tls (with keys of its own) or ucx.")] = None
    time: MaybeTime = None
    workers: Annotated[int | None, typer.Option(min=1, help="Workers per node.")] = None
    wait: Wait = "10m"
    runtime: Runtime = None
    base: Base = None
    date: Date = None
    settings: Set = None
    allow_unknown_env: AllowUnknownEnv = False
    outputs: Outputs = None

    @property
    def as_campaign_options(self) -> CampaignOptions:
        """The same as options of a campaign."""
        workers = [] if self.workers is None else [f"layout.workers={self.workers}"]
        settings = [*(self.settings or []), *workers]
        return CampaignOptions(site=self.site, runtime=self.runtime, base=self.base, date=self.date, settings=settings)


@dataclasses.dataclass(frozen=True)
class InspectOptions:
    """Which cluster to inspect, and with which Python."""

    name: Name = None
    scheduler_file: Annotated[
        Path | None, typer.Option(help="In place of NAME: the file that the scheduler of any Dask cluster wrote.")
    ] = None
    outputs: Outputs = None
    python: Annotated[
        Path | None,
        typer.Option(help="A Python with the cluster's versions; default: the cluster's own, or the site's."),
    ] = None
    site: Site = "local"
