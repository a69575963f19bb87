"""The command line, put together of the modules of its commands: of one command alone, or of all."""

import functools
import importlib
from typing import Annotated, Any

import typer

from gpubench import __version__
from gpubench.cli.help import with_help
from gpubench.cli.say import show_log

PARTS = {
    "bench": ("bench",),
    "campaign": ("plan", "submit", "status", "logs", "cancel"),
    "bisect": ("bisect",),
    "measure": ("measure",),
    "suites": ("suites",),
    "clusters": ("cluster",),
    "verdicts": ("compare", "report", "trend", "diff"),
    "results": ("results",),
    "images": ("images",),
    "sites": ("sites",),
    "node_command": ("run",),
}
"""The commands that each module registers, in the order in which --help lists them."""


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


def options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options that come before a command."""


def application(word: str | None = None) -> typer.Typer:
    """The command line; with ``word`` (a command's or a group's name) only that one is made, which is faster."""
    app = typer.Typer(
        name="gpubench",
        help="Did this version of UCX make distributed data science slower on this machine, and may I believe the "
        "answer?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for module, names in PARTS.items():
        if word is None or word in names:
            importlib.import_module(f"gpubench.cli.{module}").register(app)
    with_help(app)
    if word is not None:
        app.registered_commands = [
            entry
            for entry in app.registered_commands
            if entry.callback and word in (entry.name, entry.callback.__name__)
        ]
        app.registered_groups = [entry for entry in app.registered_groups if entry.name == word]
    return app


@functools.cache
def command(word: str | None = None) -> Any:
    """The command line of ``application``, put together once: that takes longer than most commands."""
    show_log()
    return typer.main.get_command(application(word))
