"""What a shell completes: values of options and arguments. Everything is imported when a shell asks, not before."""

import functools
import importlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

COMPLETE = "_GPUBENCH_COMPLETE"
"""The variable by which a shell asks; its name follows from the program's."""
PLAIN = re.compile(r"[\w./+@%=,-]+")
"""Other names would need quotes, which the shells' scripts don't write."""
Completer = Callable[[typer.Context, str], list[str]]


class Shell(StrEnum):
    """Shells whose words are completed."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def answer_shells() -> None:
    """Make the command line answer a shell that asks what a word may become."""
    from typer._click.shell_completion import add_completion_class
    from typer._completion_classes import FishComplete, ZshComplete, completion_init

    class Zsh(ZshComplete):
        def complete(self) -> str:
            option = _option_before_value(self.get_completion_args()[1])
            return f"compset -P {option}; words[CURRENT]=; {super().complete()}" if option else super().complete()

    class Fish(FishComplete):
        def format_completion(self, item: Any) -> str:
            return _option_before_value(self.get_completion_args()[1]) + super().format_completion(item)

    _join_options_and_values()
    completion_init()
    add_completion_class(Zsh, "zsh")
    add_completion_class(Fish, "fish")


def _option_before_value(word: str) -> str:
    """``--site=`` of ``--site=dr``: zsh and fish look for what begins with the whole word."""
    option = re.match(r"--[\w-]+=", word)
    return option[0] if option else ""


def _join_options_and_values() -> None:
    """Bash parts ``--site=dr`` into three words, and typer takes the sign for the option's value: leave it out."""
    lines = os.environ.get("COMP_WORDS", "").split("\n")
    at = os.environ.get("COMP_CWORD", "")
    if os.environ.get(COMPLETE) != "complete_bash" or not at.isdecimal():
        return
    before = lines[: int(at) + 1]
    signs = [place for place, word in enumerate(before) if word == "=" and before[place - 1].startswith("--")]
    if signs:
        os.environ["COMP_WORDS"] = "\n".join(word for place, word in enumerate(before) if place not in signs)
        os.environ["COMP_CWORD"] = str(int(at) - sum(place < int(at) for place in signs))


def show(shell: Shell | None) -> None:
    """Print the script that a shell has to read, and end."""
    if shell is not None:
        from typer._completion_shared import get_completion_script

        typer.echo(get_completion_script(prog_name="gpubench", complete_var=COMPLETE, shell=shell.value))
        raise typer.Exit


def install(shell: Shell | None) -> None:
    """Put that script where the shell reads it at its start, and end."""
    if shell is not None:
        from typer._completion_shared import install as put

        _, path = put(shell=shell.value, prog_name="gpubench", complete_var=COMPLETE)
        typer.echo(f"completion for {shell.value} is in {path}; it works in the next shell that is started")
        raise typer.Exit


def _completer(values: Callable[[typer.Context], Iterable[str]]) -> Completer:
    """Values that begin with the word; none if a file can't be read, because no message would be seen."""

    @functools.wraps(values)
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return sorted(each for each in values(ctx) if each.startswith(incomplete) and PLAIN.fullmatch(each))
        except Exception:  # noqa: BLE001 - a shell that asks shows no error; the command itself will
            return []

    del complete.__wrapped__  # its parameters are the ones that typer has to see
    return complete


def several(completer: Completer) -> Completer:
    """The last of some words that commas separate."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        *before, last = incomplete.rsplit(",", 1)
        given = f"{before[0]}," if before else ""
        return [f"{given}{each}" for each in completer(ctx, last)]

    return complete


def _shipped(folder: str) -> Completer:
    """Files that come with gpubench, by name."""

    def values(_ctx: typer.Context) -> Iterable[str]:
        from gpubench import resources

        return (path.stem for path in (resources.root() / folder).glob("*.toml"))

    return _completer(values)


def _names_in(module: str, collection: str) -> Completer:
    """What a collection holds; its module is imported when a shell asks."""
    return _completer(lambda _ctx: getattr(importlib.import_module(module), collection))


sites, suites = _shipped("sites"), _shipped("suites")
workloads = _names_in("gpubench.workloads.catalogue", "CATALOGUE")
runtimes = _names_in("gpubench.runtimes", "RUNTIMES")
protocols = _names_in("gpubench.plan.make", "PROTOCOLS")


@_completer
def backends(_ctx: typer.Context) -> Iterable[str]:
    """Of the workload that is named before."""
    from gpubench.workloads.catalogue import CATALOGUE

    return (backend for word in _typed() if word in CATALOGUE for backend in CATALOGUE[word].backends)


@_completer
def summaries(_ctx: typer.Context) -> Iterable[str]:
    """How a run is summarised."""
    from typing import get_args

    from gpubench.stats.settings import Summary

    return get_args(Summary)


@_completer
def versions(_ctx: typer.Context) -> Iterable[str]:
    """UCX versions: every release that exists as a wheel, and what is locked here."""
    from gpubench.cli.images.lock import read_lock
    from gpubench.images.specs import releases

    return {*releases(), *(row.spec for row in read_lock().image)}


@_completer
def campaigns(ctx: typer.Context) -> Iterable[str]:
    """Directories below the outputs."""
    return (str(path.parent) for path in _plans(ctx))


@_completer
def variants(ctx: typer.Context) -> Iterable[str]:
    """Labels of the campaigns that are named before, else of all below the outputs."""
    named = [plan for word in _typed() if (plan := Path(word) / "plan.json").is_file()]
    return {one["label"] for plan in named or _plans(ctx) for one in json.loads(plan.read_bytes())["variants"]}


def _typed() -> list[str]:
    """The words so far: typer loses all of them when the value of an option is completed."""
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()


def _plans(ctx: typer.Context) -> Iterator[Path]:
    return Path(ctx.params.get("outputs") or "outputs").glob("*/plan.json")
