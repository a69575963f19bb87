"""The time limit of a workload; another thread can end the workload too."""

import contextlib
import signal
from types import FrameType
from typing import Iterator, Optional

AGAIN_S = 1.0
AT_ONCE_S = 1e-3


class WorkloadTimeoutError(Exception):
    """A workload didn't end within its limit."""


class Limit:
    """Raise WorkloadTimeoutError in the main thread when the block takes longer than ``seconds``.

    And again every second until the block is left: Python swallows what is raised while an object is being deleted, and
    a workload lets go of thousands of futures.
    """

    def __init__(self, seconds: float) -> None:
        self._error: Exception = WorkloadTimeoutError(f"no answer within {seconds:g} s")
        self._seconds = seconds
        self._over = False

    def __enter__(self) -> "Limit":
        signal.signal(signal.SIGALRM, self._expired)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, AGAIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Time inside doesn't count, and nothing is raised."""
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0.0)
        try:
            yield
        finally:
            if not self._over:
                signal.setitimer(signal.ITIMER_REAL, left or AT_ONCE_S, AGAIN_S)

    def end(self, error: Exception) -> None:
        """End the block now, from any thread: ``error`` is raised in the main thread."""
        self._error = error
        if not self._over:
            signal.setitimer(signal.ITIMER_REAL, AT_ONCE_S, AGAIN_S)

    def _expired(self, _number: int, _frame: Optional[FrameType]) -> None:
        if not self._over:
            raise self._error
