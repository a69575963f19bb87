"""Tables of the pages: what their template places, one type for all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import markupsafe

from gpubench.model.text import visible
from gpubench.report import labels

NUMBER, SHORT, WHY = "number", "short", "why unsorted"
"""Looks of a column: numbers to the right; words that aren't broken; sentences, by which nobody sorts."""


@dataclasses.dataclass(frozen=True)
class PageTable:
    """``columns`` are headings with their looks; the first cell of a row names it.

    Args:
        caption: what it shows, for those who can't see it.
        columns: heading and look of each.
        rows: a text per column, or markup made by ``marked``.
        look: ``sortable``, ``cards`` (on a narrow screen each row is a card), ``rates``.
    """

    caption: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]
    look: str = ""


def marked(text: str, /, **values: str) -> markupsafe.Markup:
    """A text of ours with markup, and with values of others as text."""
    shown = {name: visible(value) for name, value in values.items()}
    return markupsafe.Markup(text).format(**shown)  # noqa: S704 - the text is ours, values are escaped


def linked(text: str, link: str) -> str:
    """The text, as a link where there is one."""
    return marked('<a href="{link}">{text}</a>', link=link, text=text) if link else text


def verdict_mark(verdict: str) -> markupsafe.Markup:
    """A verdict in its colour, with its sign."""
    sign = labels.MARKS.get(verdict, "")
    return marked('<span class="verdict {verdict}">{sign} {verdict}</span>', verdict=verdict, sign=sign)
