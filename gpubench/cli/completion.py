"""What a shell completes: values of options and arguments. Everything is imported when a shell asks, not before."""

import functools
import importlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import typer

PLAIN = re.compile(r"[\w./+@%=,-]+")
"""Other names would need quotes, which the shells' scripts don't write."""
Completer = Callable[[typer.Context, str], list[str]]


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
workloads = _names_in("gpubench.node.workloads.catalogue", "CATALOGUE")


def suites_and_workloads(ctx: typer.Context, incomplete: str) -> list[str]:
    """Both, sorted."""
    return sorted({*suites(ctx, incomplete), *workloads(ctx, incomplete)})


runtimes = _names_in("gpubench.runtimes", "RUNTIMES")
protocols = _names_in("gpubench.plan.request", "PROTOCOLS")


@_completer
def backends(_ctx: typer.Context) -> Iterable[str]:
    """Of the workload that is named before."""
    from gpubench.node.workloads.catalogue import CATALOGUE

    return (backend for word in _typed() if word in CATALOGUE for backend in CATALOGUE[word].backends)


@_completer
def versions(_ctx: typer.Context) -> Iterable[str]:
    """UCX versions: every release that exists as a wheel, and what is locked here."""
    from gpubench.images.lock import read_lock
    from gpubench.images.wheels import releases

    return {*releases(), *(row.spec for row in read_lock().image)}


@_completer
def campaigns(ctx: typer.Context) -> Iterable[str]:
    """Directories below the outputs."""
    return (str(path.parent) for path in _plans(ctx))


@_completer
def variants(ctx: typer.Context) -> Iterable[str]:
    """Labels of the campaigns that are named before, else of all below the outputs."""
    named = [plan for word in _typed() if (plan := Path(word) / "plan.json").is_file()]
    return {variant["label"] for plan in named or _plans(ctx) for variant in json.loads(plan.read_bytes())["variants"]}


def _typed() -> list[str]:
    """The words so far: typer loses all of them when the value of an option is completed."""
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()


def _plans(ctx: typer.Context) -> Iterator[Path]:
    return Path(ctx.params.get("outputs") or "outputs").glob("*/plan.json")
