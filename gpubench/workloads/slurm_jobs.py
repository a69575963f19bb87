"""Slurm jobs that a library of somebody else's submits for us: named by us, and cancelled with us, however we end.

A job outlives the process that submitted it, on nodes that no supervisor of ours is on; if that process is killed,
nobody would cancel it before its own time limit. Node half: Python 3.9, standard library only.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from typing import Iterable, List

from gpubench.workloads import process_reaper

OVER = b"over"
LATE_S = 1.0
"""After which those are looked for that were being submitted when we ended."""
CALL_S = 20.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Guard:
    """Cancels every job of this user whose name begins with ``start`` when this process ends, unless ``over`` was said.

    In a session of its own and without the marks of the run, so that what ends the run doesn't end it;
    ``process_reaper.await_cleaners`` waits for it.
    """

    def __init__(self, start: str, marks: Iterable[str]) -> None:
        self._process = process_reaper.start(
            __name__,
            start,
            stdin=subprocess.PIPE,
            start_new_session=True,
            env=process_reaper.cleaner_environment(marks),
        )

    def over(self) -> None:
        """Nothing is left to cancel."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(OVER)
        self.close()

    def close(self) -> None:
        """Have it cancel what there is, and come back when it has."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def export_all_but(names: Iterable[str]) -> str:
    """The directive by which a job gets the variables of this process, without these."""
    left_out = set(names)
    kept = sorted(name for name in os.environ if name not in left_out and _NAME.fullmatch(name))
    return "#SBATCH --export=" + ",".join(kept)


def main(start: str) -> None:
    """The guard: reading ends with the other end of the pipe, which the kernel closes for the dead."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # Slurm signals every process of the run's own job
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == OVER:
        return
    _cancel(start)
    time.sleep(LATE_S)
    _cancel(start)


def _cancel(start: str) -> None:
    words = ["squeue", "--noheader", f"--user={os.getuid()}", "--format=%i %j"]
    rows = [line.split(" ", 1) for line in _said(words).splitlines()]
    ours = [row[0] for row in rows if len(row) == 2 and row[1].startswith(start)]
    if ours:
        _said(["scancel", *ours])


def _said(words: List[str]) -> str:
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=CALL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{words[0]}: {error}", file=sys.stderr)  # noqa: T201
        return ""
    return done.stdout.decode("utf-8", "replace")
