"""Requests to end: a signal, or the end of our standard input, which a front end or a job script holds.

A supervisor has nothing to do most of the time. ``StopRequest.wait`` lets it sleep until something happens.
"""

import atexit
import contextlib
import math
import os
import select
import signal
from types import FrameType
from typing import Any, Optional, Sequence

STOP_AT_EOF_VARIABLE = "GPUBENCH_STOP_AT_EOF"
"""Set by who holds our standard input: the reason to end once it is at its end."""
REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TICK_S = 0.1
"""How often a supervisor looks itself for what wakes nobody."""
IDLE_S = 1.0
"""How long a supervisor sleeps when nothing happens: heartbeats, samples of the load and deadlines need no more."""


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
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a signal without a handler of ours would not wake ``wait``
        # Never closed: signals are written there until the process ends.
        self._woken, written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        atexit.register(_ignore)
        # Whoever started us may have blocked it; a request that never arrives would cost the node until SIGKILL.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def asked(self) -> bool:
        if self.reason is None and self._watch_stdin and _at_end(0):
            self.reason = os.environ.get(STOP_AT_EOF_VARIABLE) or "the front end is gone"
        return self.reason is not None

    def check(self) -> None:
        if self.asked():
            raise StoppedError(str(self.reason))

    def wait(self, handles: Sequence[Any], timeout_s: float) -> None:
        """Come back after a signal or the end of a child, also one since the last wait, at the end of the front end,
        when one of ``handles`` can be read, or after ``timeout_s``.

        Callers must check everything that may have happened since the last wait; then no event is lost.
        """
        waiting = select.poll()
        for handle in (self._woken, *handles, *([0] if self._watch_stdin and self.reason is None else [])):
            waiting.register(handle, select.POLLIN)
        ready = dict(waiting.poll(max(0, math.ceil(timeout_s * 1000))))
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._woken, 4096):
                    pass
        if 0 in ready:
            self.asked()  # reads what isn't the end, which would wake the next wait

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
