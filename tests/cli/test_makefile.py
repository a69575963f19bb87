"""The Makefile: its variables become options, one to one, and nothing else reaches a command."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT, need, own_queue, plain_environment

PLANNING = ("SITE", "UCX", "VARIANTS", "NODES", "SUITE", "BLOCKS", "BUDGET")
TARGETS = {
    "bench": ("bench", *PLANNING, "CAMPAIGN"),
    "plan": ("plan", *PLANNING, "CAMPAIGN", "OUT"),
    "render": ("plan", *PLANNING, "CAMPAIGN", "OUT"),
    "submit": ("submit", *PLANNING, "CAMPAIGN"),
    "status": ("status", "CAMPAIGN"),
    "cancel": ("cancel", "CAMPAIGN"),
    "resume": ("bench", "CAMPAIGN", "BLOCKS"),
    "images": ("images build", "SITE", "UCX", "OUT", "PUSH"),
    "import": ("images import", "SITE", "UCX", "OUT"),
    "report": ("report", "CAMPAIGN"),
}
"""Targets: the command, and the variables that it takes besides ARGS."""
VARIABLES = (*PLANNING, "OUT", "CAMPAIGN", "PUSH")
ARGUMENT = {"plan": "CAMPAIGN", "submit": "CAMPAIGN", "status": "CAMPAIGN", "cancel": "CAMPAIGN", "report": "CAMPAIGN"}
"""Variables that become an argument without a name."""
NEEDED = {"render": "OUT", "resume": "CAMPAIGN"}


class Make:
    """The Makefile, with a stand-in for gpubench that writes down its words."""

    def __init__(self, directory: Path) -> None:
        need(shutil.which("make") is not None, "make")
        self._said = directory / "said"
        stub = directory / "gpubench"
        stub.write_text(f'#!/usr/bin/env bash\nprintf "%s|" "$@" >>"{self._said}"\n')
        stub.chmod(0o755)
        self._words = ["make", "-s", "-C", str(ROOT), f"GPUBENCH={stub}", "-o", ".venv/.tool"]
        shell = dict.fromkeys((*VARIABLES, "ARGS"), "of the shell")
        self._env = plain_environment({**own_queue(directory), **shell, "PATH": os.environ["PATH"]})

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._words, *words], check=False, env=self._env, capture_output=True, text=True)

    def __call__(self, *words: str) -> list[str]:
        """What gpubench was called with."""
        self._said.unlink(missing_ok=True)
        done = self.run(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return self._said.read_text().split("|")[:-1]

    def refuses(self, *words: str) -> str:
        """The one line that says why; gpubench was not called."""
        self._said.unlink(missing_ok=True)
        done = self.run(*words)
        assert (done.returncode, done.stdout, self._said.exists()) == (2, "", False)
        (line,) = done.stderr.splitlines()
        return line


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return Make(tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_hands_on_what_its_command_takes_and_refuses_everything_else(make: Make, target: str) -> None:
    command, *takes = TARGETS[target]
    needed = [f"{NEEDED[target]}=d"] if target in NEEDED else []
    if not needed:
        assert make(target) == command.split()  # nothing of the shell's environment
    for name in VARIABLES:
        value = 'a b $HOME $$ $(x) it\'s "so" \\'
        more = [] if name in {"OUT", "CAMPAIGN"} else needed
        if name not in takes:
            assert f"make {target} takes no {name}; it takes " in make.refuses(target, *more, f"{name}={value}")
            continue
        found = make(target, *more, f"{name}={value}")
        option = {"PUSH": "--push"}.get(name, f"--{name.lower()}")
        option = "--out" if target == "render" and name == "CAMPAIGN" else option
        expected = [value] if ARGUMENT.get(target) == name else [option] if name == "PUSH" else [option, value]
        at = found.index(expected[0])
        assert found[at : at + len(expected)] == expected
        assert found[: len(command.split())] == command.split()
    for name in ("BUGDET", "NODE", "nodes", "REPS"):
        line = make.refuses(target, f"{name}=3")
        assert f"there is no variable {name}: `make help` lists the variables, `gpubench --help` all options" in line


def test_args_are_any_options_quoted_as_for_the_shell(make: Make) -> None:
    args = "--reps 20 --set 'env.A=$HOME $(x)' --workers \"1 2\""
    words = ["--reps", "20", "--set", "env.A=$HOME $(x)", "--workers", "1 2"]
    assert make("bench", "NODES=1 2", f"ARGS={args}") == ["bench", "--nodes", "1 2", *words]
    for target, (command, *_) in TARGETS.items():
        needed = [f"{NEEDED[target]}=d"] if target in NEEDED else []
        found = make(target, *needed, f"ARGS={args}")
        assert found[: len(command.split())] == command.split()
        assert found[-6:] == words


def test_push_may_be_denied(make: Make) -> None:
    assert make("images", "UCX=1.16.0,master", "PUSH=0") == ["images", "build", "--ucx", "1.16.0,master", "--no-push"]


@pytest.mark.parametrize("target", ["render", "resume"])
def test_make_asks_for_the_directory_that_a_target_needs(make: Make, target: str) -> None:
    done = make.run(target)
    assert (done.returncode, f"type: make {target} {NEEDED[target]}=dir" in done.stderr) == (2, True)


def test_help_names_every_target_and_every_variable(make: Make) -> None:
    # The installer's own message names PYTHON.
    shown = make.run("help", "PYTHON=/usr/bin/python3").stdout
    assert [name for name in TARGETS if f"\n  make {name} " not in f"\n{shown}"] == []
    assert [name for name in (*VARIABLES, "ARGS") if f"\n  {name} " not in shown] == []


def test_a_line_break_is_refused_because_a_recipe_would_end_there(make: Make) -> None:
    for words in ("ARGS=--a\necho INJECTED", "VARIANTS=a\nb"):
        assert f"{words.partition('=')[0]} has a line break" in make.refuses("bench", words)


@pytest.mark.parametrize("target", ["help", "test", "lint"])
def test_a_target_that_takes_no_variable_refuses_each(make: Make, target: str) -> None:
    assert f"make {target} takes no ARGS" in make.refuses(target, "ARGS=-k x")
