"""What the Makefile knows of the commands' options: the file ``options.mk``, which `make options` writes."""

import inspect
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import typer.models

from gpubench.cli.campaign import commands as campaign_commands
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.images import commands as image_commands
from gpubench.cli.options import Make, parameters_of, with_options
from gpubench.cli.results import commands as result_commands

HEAD = "# `make options` writes this file from the dataclasses and commands of gpubench/cli/."
TARGETS: dict[str, Callable[..., None]] = {
    "bench": campaign_commands.bench,
    "plan": campaign_commands.plan,
    "submit": campaign_commands.submit,
    "status": campaign_commands.status,
    "cancel": campaign_commands.cancel,
    "images": image_commands.build,
    "import": image_commands.import_,
    "report": result_commands.report,
}
PLANNING = {"bench", "plan", "submit"}
WIDTH = 120
NEXT = " \\\n\t"
UNBROKEN = "\0"
"""Placeholder for a blank at which lines must not be broken."""


class Variable(NamedTuple):
    """A variable of make, the option that it becomes (empty: an argument), and the rule that does so."""

    name: str
    option: str
    help: str
    rule: str


def variables(command: Callable[..., None]) -> Iterator[Variable]:
    """Those of a command; what the command shares with others comes first."""
    own = inspect.signature(command, eval_str=True).parameters
    return _variables(
        sorted(inspect.signature(with_options(command)).parameters.values(), key=lambda each: each.name in own)
    )


def _variables(parameters: Iterable[inspect.Parameter]) -> Iterator[Variable]:
    for each in parameters:
        parts = getattr(each.annotation, "__metadata__", ())
        make = next((part for part in parts if isinstance(part, Make)), None)
        if make is None:
            continue
        declared = next(part for part in parts if isinstance(part, typer.models.ParameterInfo))
        # In an Annotated type typer takes the name for the default until it reads the signature.
        written = declared.default if isinstance(declared.default, str) else f"--{each.name.replace('_', '-')}"
        option, _, off = written.partition("/")
        name = option.removeprefix("--").replace("-", "_").upper()
        if isinstance(declared, typer.models.ArgumentInfo):
            option = ""
        words = [(declared.help or "").removesuffix(".")]
        if isinstance(each.default, str):
            words.append(f"; default: {each.default}")
        if make.example:
            words.append(f", e.g. {name}={make.example}".replace(" ", UNBROKEN).replace(UNBROKEN, " ", 2))
        if off:
            words.append(f"; {name}=0: {off}")
        several = "list[" in str(each.annotation)
        rule = f"given_flag,{name},{option},{off}" if off else f"given{'_each' * several},{name},{option}"
        yield Variable(name, option, "".join(words), f"$(call {rule})")


def fragment() -> str:
    """The text of ``options.mk``: the table that `make help` prints, and the options of every target."""
    rows: dict[Variable, list[str]] = defaultdict(list)
    planning = _joined(_variables(parameters_of(CampaignOptions)))
    names = dict.fromkeys(one.name for command in TARGETS.values() for one in variables(command))
    rules = [f"VARIABLES ={''.join(f'{NEXT}{name}' for name in names)}", f"PLANNING ={planning}"]
    for target, command in TARGETS.items():
        found = list(variables(command))
        for one in found:
            rows[one].append(target)
        rules.append(f"{target.upper()}_OPTIONS ={_joined(found).replace(planning, f'{NEXT}$(PLANNING)')}")
    table = [
        "#:",
        "#: variables, the option that each becomes, and its targets (none named: bench, plan, submit):",
        *(line for one, targets in rows.items() for line in _row(one, targets)),
        "#: They count only on the command line: the environment of the shell never changes a benchmark.",
    ]
    return "\n".join([HEAD, *table, "", "\n\n".join(rules)]) + "\n"


def _joined(some: Iterable[Variable]) -> str:
    return "".join(f"{NEXT}{one.rule}" for one in some)


def _row(one: Variable, targets: list[str]) -> list[str]:
    named = targets if not PLANNING.issubset(targets) else [each for each in targets if each not in PLANNING]
    also = "also " if PLANNING.issubset(targets) else ""
    text = one.help + (f" ({also}{', '.join(named)})" if named else "")
    start = f"#:   {f'{one.name} {one.option}'.strip():25} "
    after = f"#:{'':{len(start) - 2}}"
    lines = textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=after, break_on_hyphens=False)
    return [line.replace(UNBROKEN, " ") for line in lines]


if __name__ == "__main__":
    sys.stdout.write(fragment())
