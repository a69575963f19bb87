"""Options that several groups of commands share; those of one group stand in its dataclass, in ``asked``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion
from gpubench.cli.declared import Make
from gpubench.model.bounds import MOST_REPS

NamedSite = Annotated[
    str, typer.Argument(help="Profile in sites/, or a .toml file.", show_default=False, autocompletion=completion.sites)
]
Site = Annotated[
    str, typer.Option(help="Profile in sites/, or a .toml file.", autocompletion=completion.sites), Make("mine.toml")
]
OneVariant = Annotated[
    str | None,
    typer.Option(
        help="VERSION[,KEY=VALUE...]; default: the first variant of the site.", autocompletion=completion.versions
    ),
]
Reps = Annotated[int | None, typer.Option(min=1, max=MOST_REPS, help="Timed repetitions of every workload."), Make()]
Protocol = Annotated[str | None, typer.Option(help="tcp or ucx.", autocompletion=completion.protocols), Make()]
Runtime = Annotated[
    str | None,
    typer.Option(
        help="How runs enter their image: venv, conda, modules, docker, pyxis, enroot, apptainer or charliecloud.",
        autocompletion=completion.runtimes,
    ),
    Make(),
]
Base = Annotated[
    str | None, typer.Option(help="Image that container builds start from; default: the profile's."), Make()
]
Date = Annotated[
    str | None, typer.Option(help="YYYYMMDD: images of that day; default: the newest in images.lock.toml."), Make()
]
Seed = Annotated[int | None, typer.Option(help="Seed of the order; the same seed gives the same order."), Make()]
Margin = Annotated[str | None, typer.Option(help="Differences up to this count as none, like 3%.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(help="What may differ between the variants of a block, like kernel or 'network.*'; repeatable."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="KEY=VALUE: any key of the site profile, dotted, like launcher=ssh."),
    Make(),
]
Svg = Annotated[Path | None, typer.Option(help="Also every chart as an SVG file in this directory.")]
Png = Annotated[Path | None, typer.Option(help="Also every chart as a PNG file in this directory.")]
Planned = Annotated[
    Path | None,
    typer.Argument(
        help="Directory of a planned campaign, instead of the options that plan one.",
        show_default=False,
        autocompletion=completion.campaigns,
    ),
    Make(),
]
MaybeCampaign = Annotated[
    Path | None,
    typer.Argument(
        help="Directory of the campaign, or a pack, where nothing is changed; default: the newest in outputs/.",
        show_default=False,
        autocompletion=completion.campaigns,
    ),
    Make(),
]
Outputs = Annotated[Path | None, typer.Option(help="Where campaigns live; default: as the profile says (outputs/).")]
