"""Facts by variant, as a table of the page: hashes and paths are cut, and what all variants share is shown once."""

import os
import re
from collections.abc import Mapping, Sequence

from gpubench.model.plan import Plan
from gpubench.report.sections import Heading, RichText, TextSpan, TextTable

_HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{12,}\b")
_PATH = re.compile(r"(?:/[^/\s,]+){2,}((?:/[^/\s,]+){3})")


def facts_table(plan: Plan, facts: Mapping[str, Sequence[str]], caption: str) -> TextTable:
    """A row per fact, a column per variant; ``facts`` are the values by name."""
    variants = [Heading(TextSpan(variant.label), "text") for variant in plan.variants]
    rows = [[name, *_cells(values)] for name, values in facts.items()]
    return TextTable(["value", *variants], rows, caption, "cards")


def _cells(values: Sequence[str]) -> list[RichText]:
    cells = [TextSpan(short, whole=whole) for short, whole in shortened(values)]
    if len(cells) == 1 or len(set(values)) > 1:
        return [*cells]
    return [[TextSpan("all:", "quiet"), " ", cells[0]]]


def shortened(values: Sequence[str]) -> list[tuple[str, str]]:
    """Each value with hashes and paths cut, and the whole value where something was cut."""
    short = [_HASH.sub(r"\1…", value) for value in values]
    cut = [_PATH.sub(r"…\1", value) for value in short]
    if len(set(cut)) < len(set(short)):  # the end of a path alone doesn't tell them apart
        common = os.path.commonprefix(short).rpartition("/")[0]  # noqa: RUF071 - cut at a slash
        cut = [f"…{value.removeprefix(common)}" if common else value for value in short]
    return [(shown, value if shown != value else "") for shown, value in zip(cut, values, strict=True)]
