"""The Python that a stack is built on: the tool's own where the stack supports it, else the first that uv finds."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys

from gpubench.errors import MissingToolError
from gpubench.images.compatibility import Stack
from gpubench.images.installer import environment, program


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """A Python: the path of its program and its full version, like ``3.11.7``."""

    path: str
    version: str


def find(stack: Stack) -> Interpreter:
    """A Python inside the stack's range.

    Raises:
        MissingToolError: there is none on this machine.
    """
    own = platform.python_version()
    if stack.python.holds(".".join(own.split(".")[:2])):
        return Interpreter(sys.executable, own)
    for minor in _minors(stack):
        if found := _ask(minor):
            return found
    raise MissingToolError(
        f"stack {stack.name} needs Python {stack.python}; gpubench runs on {own}, and no other Python was found",
        then=f"install Python {stack.python.max}",
    )


def _minors(stack: Stack) -> list[str]:
    first, last = (int(end.split(".")[1]) for end in (stack.python.min, stack.python.max))
    return [f"3.{minor}" for minor in range(last, first - 1, -1)]


def _ask(minor: str) -> Interpreter | None:
    try:
        path = _output(program(), "python", "find", "--no-project", "--no-config", minor)
        return Interpreter(path, _output(path, "-I", "-c", "import platform; print(platform.python_version())"))
    except (OSError, subprocess.SubprocessError):
        return None


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=environment(os.environ), check=True, timeout=60)
    return done.stdout.strip()
