"""An option is declared once: what typer, `make help` and make itself know of it is the same."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from docs.make_options import TARGETS, fragment, variables
from gpubench.cli.options import with_options
from tests.conftest import ROOT, Run, need, own_queue, plain_environment

COMMANDS = {"images": ("images", "build"), "import": ("images", "import")}
ARGUMENTS = {"report": "TARGET"}
"""Arguments that help calls by another name than make's variable."""


def test_what_make_knows_of_the_options_is_what_the_commands_declare() -> None:
    assert (ROOT / "options.mk").read_text() == fragment(), "make options writes it anew"


@pytest.mark.parametrize("target", TARGETS)
def test_a_command_has_every_option_that_make_hands_it(gpubench: Run, target: str) -> None:
    shown = gpubench(*COMMANDS.get(target, (target,)), "--help").stdout
    found = {one.option or f"  {ARGUMENTS.get(target, one.name.lower())} <" for one in variables(TARGETS[target])}
    assert found
    assert [option for option in found if option not in shown] == []


def test_the_fields_of_a_dataclass_are_options_and_arguments_of_a_command_that_takes_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class CalibrateOptions:
        name: Annotated[str, typer.Argument()]
        settings: Annotated[list[str] | None, typer.Option("--set")] = None
        loud: Annotated[bool, typer.Option("--loud", help="Say it aloud.")] = False

    seen: list[object] = []

    def greet(*, times: int = 1, wishes: CalibrateOptions) -> None:
        seen.extend([times, wishes])

    greet.__annotations__["wishes"] = CalibrateOptions  # a class of a function's own has no name elsewhere
    app = typer.Typer(add_completion=False)
    app.command()(with_options(greet))
    assert "Say it aloud." in CliRunner().invoke(app, ["--help"]).output
    done = CliRunner().invoke(app, ["you", "--set", "a=1", "--set", "b=2", "--times", "3", "--loud"])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, ["me"]).exit_code == 0
    assert seen == [3, CalibrateOptions("you", ["a=1", "b=2"], loud=True), 1, CalibrateOptions("me")]


def test_make_hands_on_every_kind_of_variable_and_shows_it_in_its_help(tmp_path: Path) -> None:
    need(shutil.which("make") is not None, "make")
    said = tmp_path / "said"
    stub = tmp_path / "gpubench"
    stub.write_text(f'#!/usr/bin/env bash\nprintf "%s|" "$@" >>"{said}"; echo >>"{said}"\n')
    stub.chmod(0o755)
    common = ["make", "-s", "-C", ROOT, f"GPUBENCH={stub}", "-o", ".venv/.tool"]
    environment = {**own_queue(tmp_path), "PUSH": "1", "OUT": "elsewhere", "PATH": os.environ["PATH"]}
    env = plain_environment(environment)
    for words in (
        ["images", "UCX=1.16.0,master", "PUSH=0", "SET=limits.start=2m image.base=a"],
        ["images", "PUSH=1", "BASE=b", "OUT=a dir"],
        ["import", "DATE=20221107"],
        ["bench", "CAMPAIGN=c", "REPS=2", "BUDGET=10m"],
    ):
        subprocess.run([*common, *words], check=True, env=env)
    assert said.read_text().splitlines() == [
        "images|build|--ucx|1.16.0,master|--no-push|--set|limits.start=2m|--set|image.base=a|",
        "images|build|--base|b|--push|--out|a dir|",
        "images|import|--date|20221107|",
        "bench|--budget|10m|--reps|2|--campaign|c|",
    ]
    for target in TARGETS:
        done = subprocess.run([*common, target, "BUGDET=3m"], check=False, env=env, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is no variable BUGDET: `make help` lists the variables" in done.stderr
    # The installer's own message names it.
    found = subprocess.run([*common, "help", "PYTHON=/usr/bin/python3"], check=False, env=env, capture_output=True)
    assert found.returncode == 0
    shown = subprocess.run([*common, "help"], check=True, env=env, capture_output=True, text=True).stdout
    for target in TARGETS:
        for one in variables(TARGETS[target]):
            assert f"\n  {f'{one.name} {one.option}'.strip():25} {one.help.split()[0]}" in shown
