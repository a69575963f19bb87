"""Text from files, fit to be shown: what moves a cursor, changes colours or turns the reading direction is escaped.

In the cells of a CSV, a spreadsheet takes what begins with one of ``= + - @``, a tab or CR for a formula. An apostrophe
before it keeps it text, and readers take it away again: what already begins with apostrophes gets one more, so that
every text comes back as it was. Numbers aren't touched.
"""

import re
from collections.abc import Mapping
from typing import Any

LONGEST_ERROR = 300
"""Letters of an error's line up to what to do next."""
LONGEST_ADVICE = 1200
"""Letters of what to do next: commands that people copy, with every setting that they typed."""

# C0 but the tab, DEL, C1, marks and overrides of the reading direction, separators of lines, halves of characters.
_ACTS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """One line without anything that acts on a terminal; escapes are JSON's, so that JSON keeps its meaning."""
    return _ACTS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def all_visible(value: Any) -> Any:
    """Plain data with every text in it ``visible``, keys too."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {all_visible(key): all_visible(item) for key, item in value.items()}
    return [all_visible(item) for item in value] if isinstance(value, list | tuple) else value


def cut_inside(text: str, most: int) -> str:
    """At most ``most`` letters: the first two thirds and the last, an ellipsis for what is missing."""
    end = most // 3
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[-end:]}"


def counted(count: int, noun: str) -> str:
    """``1 worker``, ``2 workers``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shortened(text: str, most: int) -> str:
    """At most ``most`` letters, the last of them an ellipsis where some are missing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


FORMULA = r"^('*[=+\-@\t\r])"
"""What gets an apostrophe; as a pattern for polars, too."""
KEPT_TEXT = r"^'('*[=+\-@\t\r])"
"""What has got one."""


def from_cell(text: str) -> str:
    """The text of a cell that got an apostrophe, so that a spreadsheet shows it as text."""
    return re.sub(KEPT_TEXT, r"\1", text)


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Sorts numbers inside texts as numbers: ``1.9.0`` before ``1.12.0``, ``{"size":16}`` before ``{"size":128}``."""
    parts = re.split(r"([0-9]+)", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def version_key(release: str) -> tuple[int, ...]:
    """``1.16.0`` → (1, 16, 0)."""
    return tuple(int(part) for part in release.split("."))
