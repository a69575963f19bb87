"""What `--help` lists: one whole phrase for each command, on a terminal of 80 columns."""

import re
import shlex
from collections.abc import Iterator

import pytest
import typer.main

from gpubench import __version__
from gpubench.cli.application import PARTS, application
from gpubench.cli.help import EXAMPLES, GROUPS, WORDS
from gpubench.runtimes import RUNTIMES
from tests.conftest import Run

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


def leaves() -> dict[str, typer.core.TyperCommand]:
    found = groups(typer.main.get_command(application()), "gpubench")
    every = {f"{path} {name}": one for path, commands in found for name, one in commands.items()}
    return {path: one for path, one in every.items() if not hasattr(one, "commands")}


def test_what_an_option_takes_is_a_word_and_no_type_of_python_and_it_names_the_adapters_that_there_are() -> None:
    for path, command in leaves().items():
        text = command.get_help(command.make_context(path, [], resilient_parsing=True))
        assert not re.search(r"<(str|int|float|path|list|number)|range>", text), path
        assert "{gpubench." not in text, path
    plan = leaves()["gpubench plan"]
    (runtime,) = plan.shell_complete(plan.make_context("plan", [], resilient_parsing=True), "--runtime")
    assert {name for name in RUNTIMES if name in runtime.help} == {*RUNTIMES}


def test_every_word_group_and_example_is_that_of_an_option_or_a_command() -> None:
    names = {param.name for command in leaves().values() for param in command.params}
    grouped = [name for members in GROUPS.values() for name in members]
    assert len(grouped) == len(set(grouped))
    assert {*WORDS, *grouped} <= names
    assert {f"gpubench {name}" for name in EXAMPLES} <= leaves().keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_can_be_typed_and_stands_in_one_line(name: str) -> None:
    command = leaves()[f"gpubench {name}"]
    example = EXAMPLES[name].removeprefix(f"gpubench {name} ")
    command.make_context(name, shlex.split(example), resilient_parsing=False)
    assert f"Example: {EXAMPLES[name]}" in command.get_help(command.make_context(name, [], resilient_parsing=True))


def test_options_of_a_campaign_stand_in_groups() -> None:
    command = leaves()["gpubench bench"]
    text = command.get_help(command.make_context("bench", [], resilient_parsing=True))
    places = [text.index(f"\n{heading}:") for heading in ("Options", *GROUPS)]
    assert places == sorted(places)
    assert places[-1] < text.index("--seed N")


def test_the_version_is_an_option_as_people_expect(gpubench: Run) -> None:
    done = gpubench("--version")
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    ("words", "offered"),
    [(["re"], ["report", "results"]), (["cluster", "gr"], ["grow"]), (["bench", "--runt"], ["--runtime"])],
)
def test_a_shell_completes_commands_and_options(gpubench: Run, words: list[str], offered: list[str]) -> None:
    typed = {"COMP_WORDS": "\n".join(["gpubench", *words]), "COMP_CWORD": str(len(words))}
    done = gpubench(env={"_GPUBENCH_COMPLETE": "complete_bash", **typed})
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, offered, "")
