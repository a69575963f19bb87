"""The variables of an image's UCX: their defaults, as its own ``ucx_info`` prints them."""

import dataclasses
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from gpubench.model.image import Image

_ANSWER_S = 20.0
_INVALID = "Invalid value for "
_HEADING = re.compile(r"#\n# (.+) configuration\n#")
_VARIABLE = re.compile(r"^(UCX_[A-Z0-9_]+)=(.*)$", re.MULTILINE)
_SYNTAX = re.compile(r"^# syntax: +(.+)$", re.MULTILINE)
_ALIAS = re.compile(r"^# alias of: +(\S+)$", re.MULTILINE)
_OF_TRANSPORT = re.compile(r"([\w-]+) (transport|memory domain|connection manager)")
_SWITCHES = ("<y|n>", "<yes|no|try>")


@dataclasses.dataclass(frozen=True)
class UcxVariable:
    """A variable as ``ucx_info -c -a -f`` lists it.

    Args:
        value: the default, where the environment says nothing.
        syntax: what UCX takes, in its words.
        alias_of: the name that this one is another name of; empty for a name of its own.
        transport: what it is a variable of (``tcp``, ``posix``, ``ib``), empty for one of all.
    """

    value: str
    syntax: str
    alias_of: str
    transport: str

    @property
    def is_switch(self) -> bool:
        return self.syntax in _SWITCHES


def parse_configuration(text: str) -> dict[str, UcxVariable]:
    """The output of ``ucx_info -c -a -f``, by name.

    Source: ``ucs_config_parser_print_opts`` in parser.c of UCX 1.19.0: a heading for each table, and before each
    variable its documentation, its syntax and the variable that it is an alias of.
    """
    variables = {}
    transport = ""
    for paragraph in text.split("\n\n"):
        if heading := _HEADING.fullmatch(paragraph.strip()):
            table = _OF_TRANSPORT.match(heading[1])
            transport = table[1].partition("-")[0].lower() if table else ""
        if variable := _VARIABLE.search(paragraph):
            syntax, alias = _SYNTAX.search(paragraph), _ALIAS.search(paragraph)
            variables[variable[1]] = UcxVariable(
                variable[2], syntax[1] if syntax else "", alias[1] if alias else "", transport
            )
    return variables


def ask_configuration(image: Image, *options: str, env: Mapping[str, str] | None = None) -> str:
    """What ``ucx_info`` of the image prints; empty where it can't be asked on this machine (other kinds than venv)."""
    libraries = image.env.get("LD_LIBRARY_PATH", "").partition(":")[0]
    program = Path(libraries).parent / "bin" / "ucx_info"
    if image.kind != "venv" or not program.is_file():
        return ""
    try:
        done = subprocess.run(
            [program, *options],
            env={**(env or {}), "LD_LIBRARY_PATH": libraries},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def accepts(image: Image, name: str, value: str, default: str) -> bool:
    """Whether the image's UCX takes the value: it doesn't complain, and prints another one than its default."""
    answer = ask_configuration(image, "-c", "-a", "-f", env={name: value})
    variable = parse_configuration(answer).get(name)
    return variable is not None and _INVALID not in answer and (value == default or variable.value != default)
