"""The one place that quotes words for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def words(items: Iterable[str]) -> str:
    """A command line that a POSIX shell splits into exactly ``items``.

    Raises:
        ValueError: a word holds a NUL byte, which no command line can carry.
    """
    listed = list(items)
    for item in listed:
        if "\0" in item:
            raise ValueError(f"a word of the command line holds a NUL byte: {item!r}")
    return shlex.join(listed)
