"""Rows of a foreign CSV file by line, with what is no row of it named."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpubench.importers.base import Refused
from gpubench.model.text import from_cell


def csv_rows(
    path: Path, name: str, begins: str, needed: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]] | Refused]:
    """Line and fields of every row; files that were joined, each with its own heading, are told apart.

    Args:
        path: the file.
        name: what it is called in messages.
        begins: the column whose name, standing as a value, says that a line is a heading.
        needed: columns without which it is another table.
    """
    heading: list[str] = []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as source:
        lines = csv.reader(source)
        while True:
            try:
                fields = next(lines)
            except StopIteration:
                return
            except csv.Error as error:
                yield Refused(name, lines.line_num, f"no CSV: {error}")
                continue
            if not any(fields):
                continue
            if begins in fields:
                heading = fields
                if missing := [column for column in needed if column not in heading]:
                    yield Refused(name, lines.line_num, f"a heading without {', '.join(missing)}")
                    heading = []
            elif not heading:
                yield Refused(
                    name, lines.line_num, f"no row of this table: no heading with {', '.join(needed)} before it"
                )
            elif len(fields) != len(heading):
                yield Refused(name, lines.line_num, f"{len(fields)} fields, the heading has {len(heading)}")
            else:
                yield lines.line_num, dict(zip(heading, map(from_cell, fields), strict=True))
