"""Real answers of schedulers and tools, each with its source, as commands on a PATH.

A file below ``tests/data/answers`` is TOML: ``source``, and for each answer a table ``[[command]]`` with ``name``;
``when``, a text that the command's words must hold; ``stdout``, ``stderr`` and ``code``. The first table that fits
answers; without one the command fails.
"""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "answers"


def answers(name: str) -> list[dict[str, str]]:
    """The tables of the file ``name`` below FOLDER."""
    plain = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    assert plain["source"]
    return [{**table, "stdout": table.get("stdout", "").removeprefix("\n")} for table in plain["command"]]


def install(name: str, folder: Path, commands: tuple[str, ...] = ()) -> str:
    """Have the commands of the file in ``folder``, and those of ``commands`` that it doesn't name fail; that PATH."""
    folder.mkdir(exist_ok=True)
    tables = answers(name)
    for command in {*commands, *(table["name"] for table in tables)}:
        cases = [_case(table) for table in tables if table["name"] == command]
        text = "\n".join(["#!/bin/sh", 'case "$*" in', *cases, "*) exit 127 ;;", "esac", ""])
        (folder / command).write_text(text, encoding="utf-8")
        (folder / command).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def _case(table: dict[str, str]) -> str:
    pattern = f"*{shlex.quote(table['when'])}*" if "when" in table else "*"
    said = f"printf %s {shlex.quote(table['stdout'])}; printf %s {shlex.quote(table.get('stderr', ''))} >&2"
    return f"{pattern}) {said}; exit {table.get('code', 0)} ;;"
