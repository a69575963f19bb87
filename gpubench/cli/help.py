"""``--help`` of a command: its options in groups, what each takes in a word, and an example."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

GROUPS = {
    "What": ("ucx", "variants", "packages", "suite", "workloads", "columns", "by", "baseline", "candidate"),
    "How much": ("blocks", "budget", "over_budget", "reps", "workers", "nodes"),
    "Where": ("site", "runtime", "protocol", "out", "outputs"),
    "How it is judged": ("margin", "allow", "fail_on"),
    "Rarely needed": ("seed", "base", "date", "settings", "allow_unknown_env"),
}
"""Headings, and the options below each by the names of their parameters; others stand above them."""
FEWEST = 10
"""Options of a command whose help has groups."""
WORDS = {
    "allow": "FIELD",
    "backend": "NAME",
    "base": "IMAGE",
    "baseline": "VARIANT",
    "blocks": "COUNT",
    "budget": "DURATION",
    "campaign": "DIR",
    "candidate": "VARIANT",
    "date": "YYYYMMDD",
    "margin": "PERCENT",
    "name": "NAME",
    "nodes": "COUNTS",
    "out": "DIR",
    "outputs": "DIR",
    "packages": "PACKAGE==VERSION",
    "points": "VARIANTS",
    "protocol": "NAME",
    "repo": "DIR",
    "runtime": "NAME",
    "settings": "KEY=VALUE",
    "site": "SITE",
    "stack": "NAME",
    "suite": "SUITE",
    "svg": "DIR",
    "time": "DURATION",
    "ucx": "VERSIONS",
    "variants": "VARIANTS",
    "wait": "DURATION",
    "workers": "COUNTS",
    "workload": "WORKLOAD",
    "workloads": "NAMES",
}
"""What an option takes, by the name of its parameter; of others the kind."""
_KINDS = {Path: "FILE", int: "N", float: "NUMBER"}
EXAMPLES = {
    "bench": 'gpubench bench --ucx "1.17.0 1.19.0" --budget 10m',
    "plan": 'gpubench plan --site draco --nodes "1 8" --ucx "v1.12.x master"',
    "submit": 'gpubench submit --site hopper.toml --nodes 2 --ucx "1.16.0 1.19.0"',
    "bisect": 'gpubench bisect --points "1.17.0 1.18.0 1.19.0" --workload merge',
    "compare": "gpubench compare samples.csv --margin 3% --fail-on regression",
    "report": "gpubench report outputs/local-quick-20261124T015312Z --svg charts",
    "images build": 'gpubench images build --site hopper.toml --ucx "1.16.0 1.19.0"',
}
"""By command."""


def _keys(placeholder: re.Match[str]) -> str:
    *names, last = getattr(importlib.import_module(placeholder[1]), placeholder[2])
    return f"{', '.join(names)} or {last}"


class WordedCommand(TyperCommand):
    """A command whose options say what they take in a word, and have groups if there are many."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            if isinstance(param, TyperOption) and not (param.metavar or param.is_flag):
                kind = param.type_descriptor
                kinds = _KINDS.get(kind.annotation, "TEXT")
                word = kinds if kind.annotation is int else WORDS.get(str(param.name), kinds)  # one number, no list
                param.metavar = None if kind.is_choice else word

    def name_adapters(self) -> None:
        """Names in place of ``{MODULE.DICT}`` in what is said of options: no other call waits for these modules."""
        for param in self.params:
            if isinstance(param, TyperOption | TyperArgument):
                param.help = re.sub(r"\{(.+)\.(\w+)\}", _keys, param.help or "")

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """With what is said of each option."""
        self.name_adapters()
        return super().shell_complete(ctx, incomplete)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, options without a group, then group by group."""
        self.name_adapters()
        headings = {name: heading for heading, names in GROUPS.items() for name in names}
        many = len(self.params) >= FEWEST
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], **{name: [] for name in GROUPS}}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                if isinstance(param, TyperArgument):  # typer adds the type in Python's words
                    sections["Arguments"].append((record[0].partition(" <")[0], record[1]))
                else:
                    sections[headings.get(str(param.name), "Options") if many else "Options"].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def with_help(app: typer.Typer, group: str = "") -> typer.Typer:
    """The application with such help for every command."""
    for entry in app.registered_commands:
        entry.cls = WordedCommand
        name = entry.name or (entry.callback.__name__ if entry.callback else "")
        if example := EXAMPLES.get(f"{group} {name}".strip()):
            entry.epilog = f"Example: {example}"
    for inner in app.registered_groups:
        if inner.typer_instance:
            with_help(inner.typer_instance, str(inner.name))
    return app
