"""A command that is interrupted first ends what it has started."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from types import FrameType

LOOK_S = 0.25


@contextlib.contextmanager
def interrupts() -> Iterator[list[str]]:
    """Names of the signals that arrived, for the loop to act on: the job has to be ended before we are.

    In a thread of another program, which can't handle signals, none is seen.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    seen: list[str] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        seen.append(signal.Signals(number).name)

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_process(process: subprocess.Popen[bytes], stop_s: float) -> None:
    """End the job, whatever the reason for stopping; it gets ``stop_s`` seconds after the signal."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(stop_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
