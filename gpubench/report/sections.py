"""Sections: the content of results, written once per kind and rendered as lines, JSON, Markdown or on a page.

Here are the parts of it and all renderings but the page's (``page``).
"""

import dataclasses
import functools
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.model.text import visible

Spec = dict[str, Any]


class Medium:
    """Where something is shown: a text of one letter for each medium."""

    TERMINAL, MARKDOWN, PAGE = "t", "m", "p"
    PRINTED, EVERYWHERE = TERMINAL + MARKDOWN, TERMINAL + MARKDOWN + PAGE


class ColumnStyle:
    """Styles of a column: numbers to the right; words that aren't broken; sentences, which aren't sortable."""

    NUMBER, SHORT, WHY = "number", "short", "why unsorted"


@dataclasses.dataclass(frozen=True)
class TextSpan:
    """A text with a style: ``style`` is a class of the style sheet, ``whole`` the full text of a cut one.

    ``sort`` is what a cell that begins with it is sorted by.
    """

    text: str
    style: str = ""
    link: str = ""
    whole: str = ""
    sort: float | str | None = None


RichText = str | TextSpan | Sequence[str | TextSpan]
"""The content of a cell or of a line."""


def spans(text: RichText) -> list[TextSpan]:
    """All of them."""
    several = [text] if isinstance(text, str | TextSpan) else text
    return [TextSpan(part) if isinstance(part, str) else part for part in several]


def plain(text: RichText) -> str:
    """The text alone."""
    return text if isinstance(text, str) else "".join(span.text for span in spans(text))


@dataclasses.dataclass(frozen=True)
class Heading:
    """``style`` is one of the above, ``label`` the heading on a narrow screen, ``medium`` where it is shown."""

    heading: RichText
    style: str = ""
    medium: str = Medium.EVERYWHERE
    label: str = ""


@dataclasses.dataclass(frozen=True)
class TextTable:
    """Rows of words; the first cell of a row names it, and a last cell that lacks neighbours spans what is left.

    Args:
        columns: one per cell; a plain text is a heading.
        caption: what it shows, for those who can't see it.
        style: ``sortable``, ``cards`` (on a narrow screen each row is a card), ``matrix``, ``facts``.
        numbers: whether a terminal aligns every column but the first to the right.
        bare: whether a terminal shows no headings.
    """

    columns: Sequence[Heading | str]
    rows: Sequence[Sequence[RichText]]
    caption: str = ""
    style: str = ""
    numbers: bool = False
    bare: bool = False
    medium: str = Medium.EVERYWHERE
    anchor: str = ""

    def on_medium(self, medium: str) -> tuple[list[Heading], list[list[RichText]]]:
        """The columns and cells that are shown there."""
        columns = [column if isinstance(column, Heading) else Heading(column) for column in self.columns]
        kept = [number for number, column in enumerate(columns) if medium in column.medium]
        rows = [[row[number] for number in kept if number < len(row)] for row in self.rows]
        return [columns[number] for number in kept], rows


@dataclasses.dataclass(frozen=True)
class Chart:
    """A picture of the page: ``name`` becomes its file's, ``draw`` makes its Vega-Lite spec when it is needed.

    ``draw_narrow`` makes that for the screen of a phone; None: the same one, which can be moved there.
    """

    anchor: str
    name: str
    draw: Callable[[], Spec]
    caption: RichText = ""
    draw_narrow: Callable[[], Spec] | None = None

    @functools.cached_property
    def spec(self) -> Spec:
        """Made once."""
        return self.draw()


@dataclasses.dataclass(frozen=True)
class SectionPart:
    """A title, lines and a table, each of which may be missing; ``depth`` is how far a terminal indents it.

    For the page alone: ``heading`` in place of the title, ``text`` (paragraphs), ``charts``, and ``fold``: the words
    that are seen while it is closed.
    """

    title: str = ""
    lines: Sequence[RichText] = ()
    table: TextTable | None = None
    depth: int = 0
    parts: "Sequence[SectionPart]" = ()
    anchor: str = ""
    heading: str = ""
    text: Sequence[RichText] = ()
    charts: Sequence[Chart] = ()
    fold: RichText = ""
    open: bool = False
    style: str = ""
    medium: str = Medium.EVERYWHERE

    def all_charts(self) -> Iterator[Chart]:
        """Its own, and those of its parts."""
        yield from self.charts
        for part in self.parts:
            yield from part.all_charts()


@dataclasses.dataclass(frozen=True)
class Section:
    """One kind of content.

    Args:
        parts: what people read.
        data: the same for programs, complete: one JSON object.
        notes: further important facts.
        width: of a terminal's lines; then a blank line parts the parts. None: lines are as long as they are.
        title, anchor, text: on the page; ``text`` are paragraphs above the parts.
        brief: beside the title of a section that can be folded; None: it can't.
        open: whether it is open at first.
    """

    parts: Sequence[SectionPart]
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    notes: Sequence[str] = ()
    width: int | None = None
    title: str = ""
    anchor: str = ""
    text: Sequence[RichText] = ()
    brief: str | None = None
    open: bool = False
    medium: str = Medium.EVERYWHERE


def text_lines(section: Section) -> Iterator[str]:
    """For a terminal."""
    for number, part in enumerate(section.parts):
        if number and section.width:
            yield ""
        yield from _part_lines(part, section.width)
    for note in section.notes:
        yield f"note: {note}"


def json_text(section: Section) -> str:
    """For programs."""
    # A column of a user's table that identifies cells may hold dates.
    return json.dumps(section.data, indent=1, ensure_ascii=False, default=str)


def markdown_text(section: Section) -> str:
    """For a pull request."""
    blocks = [block for part in section.parts for block in _markdown_blocks(part)]
    return "\n\n".join([*blocks, *(f"> {inline(note)}" for note in section.notes)]) + "\n"


def _markdown_blocks(part: SectionPart) -> Iterator[str]:
    if Medium.MARKDOWN not in part.medium:
        return
    if part.title:
        yield f"**{inline(part.title)}**"
    if part.lines:
        yield "\n".join(f"- {inline(plain(line))}" for line in part.lines)
    if part.table and Medium.MARKDOWN in part.table.medium:
        columns, rows = part.table.on_medium(Medium.MARKDOWN)
        head, *body = [
            "| " + " | ".join(cell(plain(word)) for word in row) + " |"
            for row in ([column.heading for column in columns], *rows)
        ]
        rule = "|" + "".join("--:|" if ColumnStyle.NUMBER in column.style else "---|" for column in columns)
        yield "\n".join([head, rule, *body])
    for inner in part.parts:
        yield from _markdown_blocks(inner)


def cell(text: str) -> str:
    """``inline``, in a table."""
    return inline(text).replace("|", "\\|")


def inline(text: str) -> str:
    """One line without what Markdown or HTML would take for markup."""
    shown = visible(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")
    for sign in ("\\", "*", "_", "`", "["):
        shown = shown.replace(sign, f"\\{sign}")
    return shown


def _part_lines(part: SectionPart, width: int | None) -> Iterator[str]:
    if Medium.TERMINAL not in part.medium:
        return
    outer, inner = "  " * part.depth, "  " * (part.depth + bool(part.title))
    titled = [(outer, part.title)] if part.title else []
    for indent, line in [*titled, *((inner, plain(line)) for line in part.lines)]:
        if width is None:
            yield f"{indent}{line}"
        else:
            later = f"{indent}{'    ' if indent else '  '}"
            yield from textwrap.wrap(
                line, width, initial_indent=indent, subsequent_indent=later, break_on_hyphens=False
            )
    if part.table and Medium.TERMINAL in part.table.medium:
        yield from (f"{inner}{line}".rstrip() for line in table_lines(part.table))
    for subpart in part.parts:
        yield from _part_lines(subpart, width)


def table_lines(table: TextTable) -> Iterator[str]:
    """For a terminal."""
    columns, cells = table.on_medium(Medium.TERMINAL)
    rows = [[plain(word) for word in row] for row in ([column.heading for column in columns], *cells)][table.bare :]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = [
            word.rjust(width) if table.numbers and number else word.ljust(width)
            for number, (word, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()
