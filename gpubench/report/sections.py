"""What is printed of results: a section, written once per kind of content, rendered here as lines, JSON or Markdown."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.model.text import visible


@dataclasses.dataclass(frozen=True)
class TextTable:
    """Rows of words.

    Args:
        headings: one per column.
        rows: as many words each.
        numbers: whether a terminal aligns every column but the first to the right.
        bare: whether a terminal shows no headings.
        joined: whether a terminal parts cells by `` | `` instead of aligning them.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = False
    bare: bool = False
    joined: bool = False


@dataclasses.dataclass(frozen=True)
class SectionPart:
    """A title, lines of prose, and a table, each of which may be missing; ``depth`` is how far it is indented."""

    title: str = ""
    lines: Sequence[str] = ()
    table: TextTable | None = None
    depth: int = 0


@dataclasses.dataclass(frozen=True)
class Section:
    """One kind of content.

    Args:
        parts: what people read.
        data: the same for programs, complete: one JSON object.
        notes: what a reader must know besides.
        width: of a terminal's lines; then a blank line parts the parts. None: lines are as long as they are.
    """

    parts: Sequence[SectionPart]
    data: Mapping[str, Any]
    notes: Sequence[str] = ()
    width: int | None = None


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
    return json.dumps(section.data, indent=1, ensure_ascii=False)


def markdown_text(section: Section) -> str:
    """For a pull request."""
    blocks = []
    for part in section.parts:
        if part.title:
            blocks.append(f"**{inline(part.title)}**")
        if part.lines:
            blocks.append("\n".join(f"- {inline(line)}" for line in part.lines))
        if part.table:
            head, *rows = ["| " + " | ".join(map(cell, row)) + " |" for row in (part.table.headings, *part.table.rows)]
            blocks.append("\n".join([head, "|" + "---|" * len(part.table.headings), *rows]))
    return "\n\n".join([*blocks, *(f"> {inline(note)}" for note in section.notes)]) + "\n"


def cell(text: str) -> str:
    """``inline``, in a table."""
    return inline(text).replace("|", "\\|")


def inline(text: str) -> str:
    """One line without what Markdown or HTML would take for markup."""
    plain = visible(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")
    for sign in ("\\", "*", "_", "`", "["):
        plain = plain.replace(sign, f"\\{sign}")
    return plain


def _part_lines(part: SectionPart, width: int | None) -> Iterator[str]:
    outer, inner = "  " * part.depth, "  " * (part.depth + bool(part.title))
    for indent, line in [*([(outer, part.title)] if part.title else []), *((inner, line) for line in part.lines)]:
        if width is None:
            yield f"{indent}{line}"
        else:
            later = f"{indent}{'    ' if indent else '  '}"
            yield from textwrap.wrap(
                line, width, initial_indent=indent, subsequent_indent=later, break_on_hyphens=False
            )
    if part.table:
        yield from (f"{inner}{line}".rstrip() for line in _table_lines(part.table))


def _table_lines(table: TextTable) -> Iterator[str]:
    rows = [*([] if table.bare else [table.headings]), *table.rows]
    if table.joined:
        yield from (" | ".join(row) for row in rows)
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            word.rjust(width) if table.numbers and number else word.ljust(width)
            for number, (word, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells)
