"""Commands that a message names as the way on, as the user types them."""

from __future__ import annotations

import os

from gpubench.render.quote import words

BY_MAKE = "GPUBENCH_BY_MAKE"
"""The Makefile sets it for what it starts; whoever installed a wheel has no Makefile."""
TARGETS = {"images build": "images", "images import": "import"}
"""Names of targets that differ from the command's."""


def typed(command: str, **options: object) -> str:
    """``gpubench bench --campaign DIR``, or ``make bench CAMPAIGN=DIR`` where make started this process."""
    given = {name: words([str(value)]) for name, value in options.items()}
    if os.environ.get(BY_MAKE):
        variables = [f"{name.upper()}={value}" for name, value in given.items()]
        return " ".join(["make", TARGETS.get(command, command), *variables])
    return " ".join(["gpubench", command, *(f"--{name} {value}" for name, value in given.items())])
