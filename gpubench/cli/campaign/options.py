"""Options of `bench`, `plan` and `submit`."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from gpubench.cli import completion, options
from gpubench.errors import UsageError
from gpubench.model.bounds import MOST_BLOCKS
from gpubench.model.text import shortened
from gpubench.stats.settings import Summary

if TYPE_CHECKING:
    from gpubench.model.image import Variant


@dataclasses.dataclass(frozen=True)
class CampaignOptions:
    """The options of a campaign; None for an option that was not given."""

    site: options.Site = "local"
    ucx: Annotated[
        str | None,
        typer.Option(
            help="UCX versions, separated by commas or blanks; the first is the baseline.",
            autocompletion=completion.several(completion.versions),
        ),
    ] = None
    variants: Annotated[
        str | None,
        typer.Option(
            help="[LABEL=]VERSION[,PACKAGE==VERSION...][,KEY=VALUE...], separated by blanks; the first is the baseline."
        ),
    ] = None
    packages: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="PACKAGE==VERSION: of a Python package, in every variant that names none of it; repeatable."
        ),
    ] = None
    nodes: Annotated[str | None, typer.Option(help="Node counts, separated by commas or blanks.")] = None
    suite: Annotated[
        str | None,
        typer.Option(
            help="Suite in suites/, or a .toml file; default: the profile's.", autocompletion=completion.suites
        ),
    ] = None
    blocks: Annotated[
        str | None,
        typer.Option(help="This many blocks, fixed; +N with bench --campaign: N more blocks."),
    ] = None
    budget: Annotated[
        str | None, typer.Option(help="Time budget, like 10m: plan the largest number of blocks that fits.")
    ] = None
    reps: options.Reps = None
    workers: Annotated[str | None, typer.Option(help='Workers per node: "2", or a sweep: "1 2 4".')] = None
    protocol: options.Protocol = None
    runtime: options.Runtime = None
    arrangement: Annotated[
        str | None,
        typer.Option(
            help="How a block runs its variants: sequential (one cluster after the other), interleaved (all alive, "
            "repetitions in turns), or auto (interleaved where that is possible)."
        ),
    ] = None
    base: options.Base = None
    date: options.Date = None
    seed: options.Seed = None
    margin: options.Margin = None
    summary: Annotated[
        str | None,
        typer.Option(
            help="Summary of a run's repetitions: mean (default), geomean or median; choose it before you look.",
            autocompletion=completion.summaries,
        ),
    ] = None
    power: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=0.99,
            help="Chance of finding an effect, for what the plan foresees; default 0.9. Given, it is foreseen from "
            "assumed noise where no earlier campaign tells.",
        ),
    ] = None
    settings: options.Set = None
    allow_unknown_env: options.AllowUnknownEnv = False
    outputs: options.Outputs = None

    def chosen_variants(self, default: list[str]) -> list[Variant]:
        """The variants, from ``--variants``, ``--ucx`` or the profile, and ``--with``; raises UsageError."""
        from gpubench.model.image import parse_variants, with_packages

        if self.ucx is not None and self.variants is not None:
            raise UsageError("--ucx and --variants exclude each other", then="write the versions into --variants")
        words = default if self.ucx is None else _words(self.ucx)
        return with_packages(
            parse_variants(words if self.variants is None else self.variants.split()), self.packages or []
        )

    def chosen(self, name: str, default: Any = None) -> Any:
        """What the option of that name says, ``default`` if it was not given; raises UsageError."""
        value = getattr(self, name)
        if value is None:
            return default
        return PARSERS[name](f"--{name}", value) if name in PARSERS else value

    def more_blocks(self) -> int:
        """How many blocks are added to a campaign, 0 if not given; raises UsageError."""
        return _count_of_blocks("--blocks", self.blocks[1:]) if self.blocks and self.blocks.startswith("+") else 0

    def chosen_settings(self) -> list[str]:
        """``--set`` and the options that are short for it."""
        short = [("runtime", self.runtime), ("layout.arrangement", self.arrangement), ("image.base", self.base)]
        return [*(self.settings or []), *(f'{key}="{value}"' for key, value in short if value)]


_COUNT = re.compile(r"0*[1-9][0-9]{0,9}")


def _count_of_blocks(option: str, text: str) -> int:
    if not (_COUNT.fullmatch(text) and int(text) <= MOST_BLOCKS):
        raise UsageError(f"{option} '{shortened(text, 60)}' is no count from 1 to {MOST_BLOCKS}")
    return int(text)


def _blocks(option: str, text: str) -> int:
    if text.startswith("+"):
        count = _count_of_blocks(option, text[1:])
        raise UsageError(f"{option} +{count} needs a campaign", then="name it: gpubench bench --campaign DIR")
    return _count_of_blocks(option, text)


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _counts(option: str, text: str) -> list[int]:
    words = _words(text)
    if not words or not all(_COUNT.fullmatch(word) for word in words):
        raise UsageError(
            f"{option} '{shortened(text, 60)}' is no list of counts", then=f'write it like {option} "1 2 4"'
        )
    return sorted({int(word) for word in words})


def quantity(option: str, text: str, parse: Callable[[str], float]) -> float:
    """The value of an option as ``parse`` reads it; raises UsageError."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def _date(option: str, text: str) -> str:
    try:
        if text and (len(text) != 8 or not dt.datetime.strptime(text, "%Y%m%d")):
            raise ValueError
    except ValueError:
        raise UsageError(f"{option} '{text}' is no date", then="write it like 20261107") from None
    return text


def _summary(option: str, word: str) -> str:
    if word not in get_args(Summary):
        raise UsageError(f"{option} '{word}' is none of {', '.join(get_args(Summary))}")
    return word


def _seconds(option: str, text: str) -> float:
    from gpubench.model.quantities import parse_seconds

    return quantity(option, text, parse_seconds)


def _fraction(option: str, text: str) -> float:
    from gpubench.model.quantities import parse_fraction

    return quantity(option, text, parse_fraction)


PARSERS: dict[str, Callable[[str, str], Any]] = {
    "blocks": _blocks,
    "budget": _seconds,
    "date": _date,
    "margin": _fraction,
    "nodes": _counts,
    "summary": _summary,
    "workers": _counts,
}
"""By option: what makes its value of the text; gets the option's name and the text, raises UsageError."""
