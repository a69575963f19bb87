"""Slurm jobs that a library of somebody else's submits for us: named by us, and cancelled with us, however we end."""

import functools
import os
import re
import subprocess
import sys
from typing import Iterable, List

from gpubench.node.workloads.process_reaper import Guard, clean_up_after

CALL_S = 20.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def guard(start: str, marks: Iterable[str]) -> Guard:
    """Cancels every job of this user whose name begins with ``start`` when this process ends, unless it is over."""
    return Guard(__name__, [start], marks)


def export_all_but(names: Iterable[str]) -> str:
    """The directive by which a job gets the variables of this process, without these."""
    left_out = set(names)
    kept = sorted(name for name in os.environ if name not in left_out and _NAME.fullmatch(name))
    return "#SBATCH --export=" + ",".join(kept)


def main(start: str) -> None:
    clean_up_after(functools.partial(_cancel, start))


def _cancel(start: str) -> None:
    command = ["squeue", "--noheader", f"--user={os.getuid()}", "--format=%i %j"]
    rows = [line.split(" ", 1) for line in _said(command).splitlines()]
    ours = [row[0] for row in rows if len(row) == 2 and row[1].startswith(start)]
    if ours:
        _said(["scancel", *ours])


def _said(command: List[str]) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=CALL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{command[0]}: {error}", file=sys.stderr)  # noqa: T201
        return ""
    return done.stdout.decode("utf-8", "replace")
