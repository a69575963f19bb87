"""Text in the cells of a CSV: a spreadsheet takes what begins with one of ``= + - @``, a tab or CR for a formula.

An apostrophe before it keeps it text, and readers take it away again: what already begins with apostrophes gets one
more, so that every text comes back as it was. Numbers aren't touched.
"""

from __future__ import annotations

import re

FORMULA = r"^('*[=+\-@\t\r])"
"""What gets an apostrophe; as a pattern for polars, too."""
KEPT_TEXT = r"^'('*[=+\-@\t\r])"
"""What has got one."""


def as_text(text: str) -> str:
    """The cell that a spreadsheet shows as ``text``."""
    return re.sub(FORMULA, r"'\1", text)


def from_cell(text: str) -> str:
    """What was written with ``as_text``."""
    return re.sub(KEPT_TEXT, r"\1", text)
