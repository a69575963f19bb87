"""``--notify``: a command that gets the final verdicts, and can call a webhook."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.cli.say import warn

if TYPE_CHECKING:
    from gpubench.stats.verdict import Verdict

LIMIT_S = 60.0

Notify = Annotated[
    str | None,
    typer.Option(
        metavar="CMD",
        help="Shell command to run on the finished verdicts, whose JSON is its standard input. It gets "
        "GPUBENCH_CAMPAIGN, GPUBENCH_VERDICT (the worst) and GPUBENCH_EXIT_CODE, and has 60 s. A failure is only "
        "a warning.",
    ),
]
_WORST_FIRST = ("broken", "regression", "inconclusive", "improvement", "equivalent")


def notify(command: str, document: str, *, name: str, verdicts: Sequence[Verdict], code: int) -> None:
    """Run the command; its output is discarded, and a failure is one warning.

    Args:
        document: the verdicts as JSON.
    """
    words = {one.verdict for one in verdicts}
    told = {
        "GPUBENCH_CAMPAIGN": name,
        "GPUBENCH_VERDICT": next((word for word in _WORST_FIRST if word in words), ""),
        "GPUBENCH_EXIT_CODE": str(code),
    }
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            input=document.encode(),
            env={**os.environ, **told},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
    except OSError as error:
        warn(f"--notify couldn't be run: {error.strerror}")
    except subprocess.TimeoutExpired:
        warn(f"--notify was ended after {LIMIT_S:g} s")
    else:
        if done.returncode:
            last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
            warn(f"--notify ended with exit code {done.returncode}: {last}")
