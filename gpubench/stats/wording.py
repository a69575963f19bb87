"""Reasons: one sentence beside every verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from gpubench.stats.decision import BROKEN, EQUIVALENT, INCONCLUSIVE, OBSTACLES, Decisions
from gpubench.stats.paired_blocks import CellBlocks
from gpubench.stats.settings import VerdictSettings

WIDE = "wide"
"""Begins the reason of a comparison that is inconclusive by nothing but noise."""
_MOST_FIELDS = 3
_MOST_LETTERS = 60


def percent(ratio: float) -> str:
    """``0.0312`` → ``+3.1 %``."""
    return f"{100 * ratio:+.1f} %"


def reason(cell: CellBlocks, row: int, decisions: Decisions, settings: VerdictSettings) -> str:
    """Why the cell got its verdict; an inconclusive one begins with a word and a colon.

    Args:
        cell: the comparison.
        row: its place in the arrays.
        decisions: of the whole family.
        settings: how they were made.
    """
    word, family = int(decisions.word[row]), len(decisions.word)
    if word == BROKEN:
        blocks = ", ".join(map(str, cell.broken_blocks))
        return f"the candidate failed in {len(cell.broken_blocks)} blocks where the baseline ran ({blocks})"
    if word == INCONCLUSIVE:
        return _why_inconclusive(cell, row, decisions, settings)
    text = (
        _margin_words(settings)
        if word == EQUIVALENT
        else f"p {p_words(decisions.p_holm[row])} after Holm over {family}"
    )
    decided = "" if cell.comparison.frozen_at is None else f"; decided at block {cell.comparison.frozen_at}"
    return f"{text} in {_blocks(decisions, row)}{_where(cell)}{decided}"


def _why_inconclusive(cell: CellBlocks, row: int, decisions: Decisions, settings: VerdictSettings) -> str:
    obstacle = OBSTACLES[int(decisions.obstacle[row])]
    if obstacle:
        return f"{obstacle}: {_obstacle(obstacle, cell, row, decisions)}"
    if cell.broken_blocks:
        where = f"the candidate failed in block {cell.broken_blocks[0]}, where the baseline ran"
        return f"failed: {where}; it can't be called equivalent or improved"
    if math.isnan(decisions.p_holm[row]):
        return f"no look yet: {_blocks(decisions, row)} so far, the first look is at 5"
    effect, half = decisions.estimates.location.effect[row], decisions.estimates.half_width[row]
    shown = f"{_blocks(decisions, row)} don't show the difference to be {_margin_words(settings)}"
    p = f"p {p_words(decisions.p_holm[row])} after Holm over {len(decisions.word)}"
    return f"{WIDE}: {likely(effect - half, effect + half)}{shown}, and {p}{_where(cell)}"


def likely(low: float, high: float) -> str:
    """``likely slower, not proven; `` by an interval that was made without regard to the family; mostly empty."""
    return f"{word}; " if (word := leaning(low, high)) else ""


def leaning(low: float | None, high: float | None) -> str:
    """What an interval that was made without regard to the family says of an inconclusive comparison."""
    if low is not None and low > 0:
        return "likely slower, not proven"
    return "likely faster, not proven" if high is not None and high < 0 else ""


def _obstacle(obstacle: str, cell: CellBlocks, row: int, decisions: Decisions) -> str:
    blocks = _blocks(decisions, row)
    return {
        "no data": _no_data(cell),
        "few blocks": f"{blocks} can't carry a verdict; 3 with repetitions are the least, and 5 or more are advised",
        "one sample": f"{blocks} without spread within runs say nothing about noise; take more blocks or repetitions",
        "no variation": f"all {blocks} show the same difference; repeated rows are not repeated runs",
        "order": f"{cell.order_problem}; shuffle the order within blocks",
        "environment": _changed(cell.comparison.changed),
    }[obstacle]


def _no_data(cell: CellBlocks) -> str:
    one = cell.comparison
    if one.skipped:
        return f"skipped, as planned: {one.skipped}"
    return f"no block in which both variants ran, of {one.planned_blocks} planned"


def _changed(changed: Mapping[str, str]) -> str:
    named = dict(itertools.islice(changed.items(), _MOST_FIELDS))
    words = ", ".join(f"{field} {_short(values)}" for field, values in named.items())
    more = f" and {len(changed) - len(named)} more" if len(changed) > len(named) else ""
    allow = " ".join(f"--allow {field}" for field in named)
    return f"changed with the variant: {words}{more}; if that is meant: {allow}{' …' if more else ''}"


def _short(values: str) -> str:
    return values if len(values) <= _MOST_LETTERS else f"{values[: _MOST_LETTERS - 1]}…"


def _margin_words(settings: VerdictSettings) -> str:
    return f"within ±{100 * settings.margin:g} %"


def _blocks(decisions: Decisions, row: int) -> str:
    count = int(decisions.estimates.location.blocks[row])
    return f"{count} block" if count == 1 else f"{count} blocks"


def _where(cell: CellBlocks) -> str:
    return ", on these nodes" if cell.one_job else ""


def p_words(value: float) -> str:
    """``0.012``, ``< 0.0001``."""
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"
