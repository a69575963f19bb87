"""Options that several commands share, and their values as typed."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from gpubench.errors import UsageError
from gpubench.model.bounds import MOST_BLOCKS, MOST_REPS
from gpubench.model.text import shortened
from gpubench.stats.settings import Summary as SummaryWord

if TYPE_CHECKING:
    from gpubench.model.image import Variant

Site = Annotated[str, typer.Option(help="Profile in sites/, or a .toml file.")]
Ucx = Annotated[str | None, typer.Option(help="UCX versions, parted by commas or blanks; the first is the baseline.")]
Variants = Annotated[
    str | None, typer.Option(help="[LABEL=]VERSION[,KEY=VALUE...], parted by blanks; the first is the baseline.")
]
Nodes = Annotated[str | None, typer.Option(help="Node counts, parted by commas or blanks.")]
SuiteName = Annotated[str | None, typer.Option("--suite", help="Suite in suites/, or a .toml file.")]
Blocks = Annotated[int | None, typer.Option(min=1, max=MOST_BLOCKS, help="This many blocks, fixed.")]
Budget = Annotated[str | None, typer.Option(help="The most blocks that fit into this time, like 10m.")]
Reps = Annotated[int | None, typer.Option(min=1, max=MOST_REPS, help="Timed repetitions of every workload.")]
Workers = Annotated[str | None, typer.Option(help='Workers per node: "2", or a sweep: "1 2 4".')]
Protocol = Annotated[str | None, typer.Option(help="tcp or ucx.")]
Runtime = Annotated[
    str | None,
    typer.Option(
        help="How runs enter their image: venv, conda, modules, docker, pyxis, enroot, apptainer or charliecloud."
    ),
]
Arrangement = Annotated[
    str | None,
    typer.Option(
        help="How a block runs its variants: sequential (one cluster after the other) interleaved (all alive, "
        "repetitions in turns), or auto (interleaved where that is possible)."
    ),
]
Base = Annotated[str | None, typer.Option(help="Image that container builds start from; default: the profile's.")]
Date = Annotated[
    str | None, typer.Option(help="YYYYMMDD: images of that day; default: the newest in images.lock.toml.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the order; the same seed gives the same order.")]
Margin = Annotated[str | None, typer.Option(help="Differences up to this count as none, like 3%.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(help="What may differ between the variants of a block, like kernel or 'network.*'; repeatable."),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE: any key of the site profile, dotted, like launcher=ssh.")
]
AllowUnknownEnv = Annotated[
    bool, typer.Option("--allow-unknown-env", help="Set also variables that nothing is known to read.")
]
Summary = Annotated[
    str | None, typer.Option(help="The number of a run: mean (default), geomean or median; chosen before looking.")
]
Adaptive = Annotated[
    bool, typer.Option("--adaptive", help="Look after 5, 6, then every second block; stop what is decided.")
]
Power = Annotated[
    float | None,
    typer.Option(
        min=0.5,
        max=0.99,
        help="Chance of finding an effect, for what the plan foresees; default 0.9. Given, it is foreseen from assumed "
        "noise where no earlier campaign tells.",
    ),
]
Svg = Annotated[Path | None, typer.Option(help="Also every chart as an SVG file in this directory.")]
Png = Annotated[Path | None, typer.Option(help="Also every chart as a PNG file in this directory.")]
MaxBlocks = Annotated[int, typer.Option(min=5, max=MOST_BLOCKS, help="With --adaptive: never more blocks than this.")]
CampaignDir = Annotated[Path, typer.Argument(help="Directory of the campaign.", show_default=False)]
Planned = Annotated[
    Path | None,
    typer.Argument(help="Directory of a planned campaign, instead of the options that plan one.", show_default=False),
]
MaybeCampaign = Annotated[
    Path | None,
    typer.Argument(
        help="Directory of the campaign, or a pack, where nothing is changed; default: the newest in outputs/.",
        show_default=False,
    ),
]
Other = Annotated[
    Path | None,
    typer.Argument(metavar="B", help="A second campaign or import, held against the first.", show_default=False),
]
Outputs = Annotated[Path | None, typer.Option(help="Where campaigns live; default: as the profile says (outputs/).")]


@dataclasses.dataclass(frozen=True)
class Asked:
    """What the user asked for; None where nothing was given."""

    site: str = "local"
    ucx: str | None = None
    variants: str | None = None
    nodes: str | None = None
    suite: str | None = None
    blocks: int | None = None
    budget: str | None = None
    reps: int | None = None
    workers: str | None = None
    protocol: str | None = None
    runtime: str | None = None
    arrangement: str | None = None
    base: str | None = None
    date: str | None = None
    seed: int | None = None
    margin: str | None = None
    settings: list[str] | None = None
    outputs: Path | None = None
    summary: str | None = None
    max_blocks: int | None = None
    power: float | None = None
    allow_unknown_env: bool = False

    def chosen_variants(self, default: list[str]) -> list[Variant]:
        """The variants, from ``--variants``, ``--ucx`` or the profile; raises UsageError."""
        from gpubench.model.image import parse_variants

        if self.ucx is not None and self.variants is not None:
            raise UsageError("--ucx and --variants exclude each other", then="write the versions into --variants")
        if self.variants is not None:
            return parse_variants(self.variants.split())
        if self.ucx is not None:
            return parse_variants(_words(self.ucx))
        return parse_variants(default)

    def chosen_nodes(self, default: list[int]) -> list[int]:
        """The node counts, ascending and once each; raises UsageError."""
        return default if self.nodes is None else _counts("--nodes", self.nodes)

    def chosen_workers(self, default: int) -> list[int]:
        """The counts of workers per node, ascending and once each; raises UsageError."""
        return [default] if self.workers is None else _counts("--workers", self.workers)

    def chosen_settings(self) -> list[str]:
        """``--set`` and the options that are short for it."""
        short = [("runtime", self.runtime), ("layout.arrangement", self.arrangement), ("image.base", self.base)]
        return [*(self.settings or []), *(f'{key}="{value}"' for key, value in short if value)]

    def chosen_date(self) -> str:
        """``YYYYMMDD``, empty where none was given; raises UsageError."""
        date = self.date or ""
        try:
            if date and (len(date) != 8 or not dt.datetime.strptime(date, "%Y%m%d")):
                raise ValueError
        except ValueError:
            raise UsageError(f"--date '{date}' is no date", then="write it like 20261107") from None
        return date

    def chosen_budget(self) -> float | None:
        """Seconds, None where no budget was given; raises UsageError."""
        from gpubench.model.quantities import parse_seconds

        return None if self.budget is None else _quantity("--budget", self.budget, parse_seconds)

    def chosen_summary(self) -> SummaryWord:
        """The number of a run; raises UsageError."""
        word = self.summary or "mean"
        if word not in get_args(SummaryWord):
            raise UsageError(f"--summary '{word}' is none of {', '.join(get_args(SummaryWord))}")
        return cast("SummaryWord", word)

    def check(self) -> None:
        """Raise UsageError for any value that can't be read."""
        self.chosen_budget()
        self.chosen_date()
        self.chosen_margin()
        self.chosen_summary()

    def chosen_margin(self) -> float | None:
        """A fraction, None where no margin was given; raises UsageError."""
        from gpubench.model.quantities import parse_fraction

        return None if self.margin is None else _quantity("--margin", self.margin, parse_fraction)


_COUNT = re.compile(r"0*[1-9][0-9]{0,9}")


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _counts(option: str, text: str) -> list[int]:
    words = _words(text)
    if not words or not all(_COUNT.fullmatch(word) for word in words):
        raise UsageError(
            f"{option} '{shortened(text, 60)}' is no list of counts", then=f'write it like {option} "1 2 4"'
        )
    return sorted({int(word) for word in words})


def _quantity(option: str, text: str, parse: Callable[[str], float]) -> float:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
