"""What the options of a campaign say: values of their texts."""

import datetime as dt
import functools
import re
from collections.abc import Callable
from typing import Any

from gpubench.campaign.options import CampaignOptions
from gpubench.errors import UsageError
from gpubench.model.bounds import MOST_BLOCKS
from gpubench.model.quantities import parse_fraction, parse_seconds
from gpubench.model.text import shortened


def chosen_values(options: CampaignOptions) -> dict[str, Any]:
    """The values of the options that were given, by name; raises UsageError."""
    if options.ucx is not None and options.variants is not None:
        raise UsageError("--ucx and --variants exclude each other", then="write the versions into --variants")
    return {name: parsed(name, value) for name, value in vars(options).items() if value is not None}


def parsed(name: str, value: Any) -> Any:
    """The value of an option's text, None for None; raises UsageError."""
    return PARSERS[name](f"--{name}", value) if name in PARSERS and value is not None else value


def more_blocks(options: CampaignOptions) -> int:
    """How many blocks are added to a campaign, 0 if not given; raises UsageError."""
    return _count_of_blocks("--blocks", options.blocks[1:]) if options.blocks and options.blocks.startswith("+") else 0


def chosen_settings(options: CampaignOptions) -> list[str]:
    """``--set`` and the options that are short for it."""
    short = [("runtime", options.runtime), ("image.base", options.base)]
    return [*(options.settings or []), *(f'{key}="{value}"' for key, value in short if value)]


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


def _entries(_option: str, text: str) -> list[str]:
    return text.replace(",", " ").split()


def _counts(option: str, text: str) -> list[int]:
    counts = _entries(option, text)
    if not counts or not all(_COUNT.fullmatch(count) for count in counts):
        raise UsageError(
            f"{option} '{shortened(text, 60)}' is no list of counts", then=f'write it like {option} "1 2 4"'
        )
    return sorted({int(count) for count in counts})


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


PARSERS: dict[str, Callable[[str, str], Any]] = {
    "blocks": _blocks,
    "budget": functools.partial(quantity, parse=parse_seconds),
    "date": _date,
    "margin": functools.partial(quantity, parse=parse_fraction),
    "nodes": _counts,
    "ucx": _entries,
    "variants": lambda _option, text: text.split(),
    "workers": _counts,
    "workloads": _entries,
}
"""By option: what makes its value of the text; gets the option's name and the text, raises UsageError."""
