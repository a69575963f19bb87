"""Processes that clean up behind us, however we end: what a library of somebody else's has started on other nodes.

Jobs and pods outlive the process that asked for them, on nodes that no supervisor of ours is on; if that process is
killed, nobody else would end them before their own time limit. Node half: Python 3.9, standard library only.
"""

import contextlib
import signal
import subprocess
import sys
import time
from typing import Callable, Iterable

from gpubench.workloads import process_reaper

OVER = b"over"
LATE_S = 1.0
"""After which those are looked for that were being started when we ended."""


class Guard:
    """Runs ``main(*words)`` of one of our modules, which calls ``clean_up_after``.

    In a session of its own and without ``marks``, those of the run, so that what ends the run doesn't end it;
    ``process_reaper.await_cleaners`` waits for it.
    """

    def __init__(self, module: str, words: Iterable[str], marks: Iterable[str]) -> None:
        self._process = process_reaper.start(
            module,
            *words,
            stdin=subprocess.PIPE,
            start_new_session=True,
            env=process_reaper.cleaner_environment(marks),
        )

    def over(self) -> None:
        """Nothing is left to clean up."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(OVER)
        self.close()

    def close(self) -> None:
        """Have it clean up, and come back when it has."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def clean_up_after(clean_up: Callable[[], object]) -> None:
    """The guard: reading ends with the other end of the pipe, which the kernel closes for the dead."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # Slurm signals every process of the run's own job
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == OVER:
        return
    clean_up()
    time.sleep(LATE_S)
    clean_up()
