"""Commands that a message proposes, as the user types them."""

import os
import re
import shlex
from pathlib import Path

from gpubench.render.environment import words

BY_MAKE = "GPUBENCH_BY_MAKE"
"""The Makefile sets it for its commands; an installed wheel has no Makefile."""
TARGETS = {"images build": "images", "images import": "import"}
"""Names of targets that differ from the command's."""
_ADVICE = re.compile(r"--(blocks|budget|nodes|reps|suite|ucx|variants|workers)\b( (?=[\d\"]))?")
"""Options that advice names, and the blank before a value."""


def typed(command: str, of: Path | None = None, **options: object) -> str:
    """``gpubench bench --campaign DIR``, or ``make bench CAMPAIGN=DIR`` where make started this process.

    ``of`` is the campaign of a command that takes it without a name: ``gpubench cancel DIR``.
    """
    given = {name: words([str(value)]) for name, value in options.items()}
    campaign = [] if of is None else [words([str(of)])]
    if os.environ.get(BY_MAKE):
        variables = [f"{name.upper()}={value}" for name, value in given.items()]
        return " ".join(["make", TARGETS.get(command, command), *(f"CAMPAIGN={path}" for path in campaign), *variables])
    return " ".join(["gpubench", command, *campaign, *(f"--{name} {value}" for name, value in given.items())])


def as_typed(command: str) -> str:
    """A command line of ``gpubench bench`` as ``typed`` spells it; any other as it is."""
    parts = shlex.split(command)
    if not os.environ.get(BY_MAKE) or parts[:2] != ["gpubench", "bench"]:
        return command
    options = zip(parts[2::2], parts[3::2], strict=True)
    return typed("bench", None, **{name.removeprefix("--"): value for name, value in options})


def advice(text: str) -> str:
    """``give --budget 2m`` as it is, or ``give BUDGET=2m`` where make started this process; commands stay."""
    if not os.environ.get(BY_MAKE) or "gpubench " in text:
        return text
    return _ADVICE.sub(lambda found: found[1].upper() + ("=" if found[2] else ""), text)
