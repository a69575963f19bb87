"""Jinja's environment for templates, and how words are quoted for a shell in every script."""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gpubench.model.base import one_line
from gpubench.runtimes.base import Expanded

if TYPE_CHECKING:
    import jinja2

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


_SPECIAL = re.compile(r'(["\\$])')


def environment(templates: Mapping[str, str]) -> jinja2.Environment:
    """An environment for shell, Dockerfiles and the like; ``templates`` are texts by path below ``templates/``.

    Filters: ``words`` a list as shell words, ``word`` one of them, ``quoted`` the value of a Dockerfile's ENV or LABEL,
    ``line`` text in a comment, ``yaml`` a value in YAML. ``word``, ``quoted`` and ``line`` raise ValueError for a
    control character, which would start a new line.
    """
    return _environment(tuple(templates.items()))


@functools.lru_cache(maxsize=8)
def _environment(templates: tuple[tuple[str, str], ...]) -> jinja2.Environment:
    """Kept, because an environment keeps its compiled templates: compiling takes longer than rendering."""
    import jinja2  # noqa: PLC0415 - messages need the words of this module, and no template

    made = jinja2.Environment(
        loader=jinja2.DictLoader(dict(templates)),
        undefined=jinja2.StrictUndefined,
        comment_start_string="{##",  # ${#array[@]} is shell, not a comment
        comment_end_string="##}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - shell, not HTML
    )
    made.filters |= {"words": command_line, "word": _word, "quoted": _quoted, "line": one_line, "yaml": _yaml}
    return made


def _word(text: str) -> str:
    return command_line([one_line(text)])


def _quoted(text: str) -> str:
    return '"' + _SPECIAL.sub(r"\\\1", one_line(text)) + '"'


def _yaml(value: object) -> str:
    """JSON, which YAML 1.2 contains; a number as text stays text (``"16"``), and ``no`` a word."""
    return json.dumps(value, ensure_ascii=False)
