"""In which line of a TOML text a key stands; the standard library's reader doesn't say."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_LONG = re.compile(r'"""|' + "'''")


@dataclasses.dataclass(frozen=True)
class TomlSource:
    """What messages call a file, and the lines of its keys (``workload.0.params.size``), where they are known."""

    name: str
    lines: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def at(self, path: str) -> str:
        """``FILE:LINE`` of the key, or of the table or value that it is in; ``FILE`` where neither is known."""
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        return f"{self.name}:{self.lines[path]}" if path else self.name


def key_lines(text: str) -> dict[str, int]:
    """The first line of every table and key of a text that is TOML; lines begin at 1, entries of a list at 0."""
    lines: dict[str, int] = {}
    entries: dict[str, int] = {}
    table: list[str] = []
    inside = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not inside and (header := _TABLE.match(line)):
            *above, last = _parts(header[2])
            table = [*_placed(above, entries), last]
            if header[1] == "[[":
                dotted = ".".join(table)
                entries[dotted] = entries.get(dotted, -1) + 1
                table.append(str(entries[dotted]))
            lines.setdefault(".".join(table), number)
        elif not inside and (key := _KEY.match(line)):
            lines.setdefault(".".join([*table, *_parts(key[1])]), number)
        for mark in _LONG.findall(line):
            inside = "" if inside == mark else inside or mark
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]


def _placed(parts: list[str], entries: Mapping[str, int]) -> list[str]:
    """With the number of the entry behind every list of tables: the last one there is."""
    placed: list[str] = []
    for part in parts:
        placed.append(part)
        if (dotted := ".".join(placed)) in entries:
            placed.append(str(entries[dotted]))
    return placed
