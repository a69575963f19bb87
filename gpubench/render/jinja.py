"""Jinja's environment for templates of shell, Dockerfiles and YAML, with the filters that quote in them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpubench.model.base import check_one_line
from gpubench.model.text import counted
from gpubench.node.spec.records import EXIT_NODE
from gpubench.render.shell import command_line

if TYPE_CHECKING:
    import jinja2

_SPECIAL = re.compile(r'(["\\$])')


def environment(templates: Mapping[str, str]) -> jinja2.Environment:
    """An environment for shell, Dockerfiles and the like; ``templates`` are texts by path below ``templates/``.

    Filters: ``words`` a list as shell words, ``word`` one of them, ``quoted`` the value of a Dockerfile's ENV or LABEL,
    ``line`` text in a comment, ``yaml`` a value in YAML, ``counted`` a number with its noun. ``word``, ``quoted`` and
    ``line`` raise ValueError for a control character, which would start a new line.
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
    made.globals["EXIT_NODE"] = EXIT_NODE
    made.filters |= {"words": command_line, "word": _word, "quoted": _quoted, "line": check_one_line, "yaml": _yaml}
    made.filters["counted"] = counted
    return made


def _word(text: str) -> str:
    return command_line([check_one_line(text)])


def _quoted(text: str) -> str:
    return '"' + _SPECIAL.sub(r"\\\1", check_one_line(text)) + '"'


def _yaml(value: object) -> str:
    """JSON, which YAML 1.2 contains; a number as text stays text (``"16"``), and ``no`` a word."""
    return json.dumps(value, ensure_ascii=False)
