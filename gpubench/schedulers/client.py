"""Client commands of a scheduler, and the environment that a job gets of the shell that submits it.

No command runs without a time limit: with a dead controller they hang for minutes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gpubench.errors import MissingToolError, SchedulerError

DEADLINE_S = 30.0
OURS = "GPUBENCH_"
"""Begins every name by which a script, or what it starts, can be told something else than the plan says."""
BLOCKS = "GPUBENCH_BLOCKS"
BUDGET = "GPUBENCH_BUDGET"
OVER_BUDGET = "no time left in the budget"
"""How the reason of a run begins whose block the script didn't begin for that."""


def call(
    words: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a client command with ``text`` as its input; its exit code is the caller's to judge.

    Raises:
        MissingToolError: the command isn't installed here.
        SchedulerError: it didn't answer within DEADLINE_S seconds.
    """
    try:
        return subprocess.run(
            list(words),
            env=dict(os.environ if env is None else env),
            cwd=cwd,
            input=text or "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except FileNotFoundError:
        raise MissingToolError(
            f"there is no {words[0]} on this machine", then="run it on a login node of the site"
        ) from None
    except subprocess.TimeoutExpired:
        raise SchedulerError(
            f"{words[0]} didn't answer within {DEADLINE_S:g} s", then="is the controller up? try again later"
        ) from None


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What the command said, on one line."""
    return " ".join((done.stderr or done.stdout).split())[:300] or f"exit code {done.returncode}"


def inherited(
    environ: Mapping[str, str], blocks: Iterable[int] | None = None, budget_s: float | None = None
) -> dict[str, str]:
    """All of it but the names that are ours: those are for who starts a script by hand.

    Args:
        environ: of this process.
        blocks: numbers of those that the script shall run; None: all.
        budget_s: seconds from the script's start in which they have to end, None: no bound.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(OURS)}
    if blocks is not None:
        kept[BLOCKS] = " ".join(map(str, blocks))
    if budget_s is not None:
        kept[BUDGET] = str(max(0, int(budget_s)))
    return kept
