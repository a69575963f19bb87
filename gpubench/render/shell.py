"""How words are quoted for a shell, in every script and in every command that is shown."""

import re
import shlex
from collections.abc import Iterable

from gpubench.runtimes.base import Expanded

# What means something between double quotes; a plain $NAME stays as it is.
_IN_DOUBLE_QUOTES = re.compile(r'([\\`"]|\$(?![A-Za-z_]))')


def command_line(items: Iterable[str]) -> str:
    """A command line that a POSIX shell splits into exactly ``items``, with the variables of ``Expanded`` words put in.

    Raises:
        ValueError: a word holds a NUL byte, which no command line can carry.
    """
    listed = list(items)
    for item in listed:
        if "\0" in item:
            raise ValueError(f"a word of the command line holds a NUL byte: {item!r}")
    return " ".join(_shell_word(item) for item in listed)


def _shell_word(item: str) -> str:
    if isinstance(item, Expanded):
        return '"' + _IN_DOUBLE_QUOTES.sub(r"\\\1", item) + '"'
    return shlex.quote(item)
