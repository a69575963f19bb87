"""Requests to end: a signal, or the end of the front end that holds our standard input."""

import atexit
import os
import select
import signal
from types import FrameType
from typing import Optional

EXIT_OK = 0
EXIT_NODE = 40
"""Of a supervisor: no record could be written, or the node is not usable for further runs."""
STOP_AT_EOF_VARIABLE = "GPUBENCH_STOP_AT_EOF"
"""Set by a front end that holds our standard input."""
REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StoppedError(Exception):
    """The run was asked to end; the message says by what."""


class StopRequest:
    """Remembers the first request; ``check`` raises it where the supervisor can deal with it."""

    def __init__(self, *, watch_stdin: Optional[bool] = None) -> None:
        """``watch_stdin``: by default if the environment holds ``STOP_AT_EOF_VARIABLE``."""
        self.reason: Optional[str] = None
        self._watch_stdin = STOP_AT_EOF_VARIABLE in os.environ if watch_stdin is None else watch_stdin
        for number in REQUESTS:
            signal.signal(number, self._remember)
        atexit.register(_ignore)
        # A runtime that has to outlive us blocks it for us too: templates/runtimes/charliecloud.sh.j2
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def asked(self) -> bool:
        """Whether the process was asked to end."""
        if self.reason is None and self._watch_stdin and _at_end(0):
            self.reason = "the front end is gone"
        return self.reason is not None

    def check(self) -> None:
        """Raise StoppedError if the process was asked to end."""
        if self.asked():
            raise StoppedError(str(self.reason))

    def _remember(self, number: int, _frame: Optional[FrameType]) -> None:
        self.reason = self.reason or f"interrupted by {signal.Signals(number).name}"


def _ignore() -> None:
    """Ignore late signals: Python resets handlers when it finalizes, and a signal would then change the exit code."""
    for number in REQUESTS:
        signal.signal(number, signal.SIG_IGN)


def _at_end(handle: int) -> bool:
    """Whether reading would give end of file: the other end of the pipe was closed, also by kill -9."""
    readable, _, _ = select.select([handle], [], [], 0)
    return bool(readable) and os.read(handle, 4096) == b""
