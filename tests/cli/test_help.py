"""What `--help` lists: one whole phrase for each command, on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import typer.main

from gpubench.cli.application import PARTS, application

COLUMNS = 78  # of 80, as click counts them


def groups(command: object, path: str) -> Iterator[tuple[str, dict[str, typer.core.TyperCommand]]]:
    commands = getattr(command, "commands", {})
    if commands:
        yield path, commands
    for name, inner in commands.items():
        yield from groups(inner, f"{path} {name}")


def test_no_line_of_help_is_cut_off() -> None:
    cut = [
        f"{path} {name}"
        for path, commands in groups(typer.main.get_command(application()), "gpubench")
        for name, command in commands.items()
        if command.get_short_help_str(COLUMNS - 6 - max(map(len, commands))).endswith("...")
    ]
    assert cut == []


def test_a_command_that_is_made_alone_is_the_one_that_help_lists() -> None:
    every = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    assert {name for names in PARTS.values() for name in names} == every.keys()
    for name in every:
        alone = typer.main.get_command(application(name)).commands  # type: ignore[attr-defined]
        assert [*alone] == [name]
        assert [one.opts for one in alone[name].params] == [one.opts for one in every[name].params]
        assert alone[name].help == every[name].help
