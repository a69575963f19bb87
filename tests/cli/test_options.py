"""An option is declared once, as a field of a dataclass."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from typer.testing import CliRunner

from gpubench.cli.options import with_options


def test_the_fields_of_a_dataclass_are_options_and_arguments_of_a_command_that_takes_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class GreetOptions:
        name: Annotated[str, typer.Argument()]
        settings: Annotated[list[str] | None, typer.Option("--set")] = None
        loud: Annotated[bool, typer.Option("--loud", help="Say it aloud.")] = False

    seen: list[object] = []

    def greet(*, times: int = 1, options: GreetOptions) -> None:
        seen.extend([times, options])

    greet.__annotations__["options"] = GreetOptions  # a class of a function's own has no name elsewhere
    app = typer.Typer(add_completion=False)
    app.command()(with_options(greet))
    assert "Say it aloud." in CliRunner().invoke(app, ["--help"]).output
    done = CliRunner().invoke(app, ["you", "--set", "a=1", "--set", "b=2", "--times", "3", "--loud"])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, ["me"]).exit_code == 0
    assert seen == [3, GreetOptions("you", ["a=1", "b=2"], loud=True), 1, GreetOptions("me")]
