"""Waiting for what nobody announces: ask again until it is there or a deadline has passed."""

import random
import time
from typing import Callable, TypeVar

T = TypeVar("T")
GROWTH = 1.5


def poll_until(
    condition: Callable[[], T], deadline: float, every_s: float, *, longest_s: float = 0.0, jitter: bool = False
) -> T:
    """Call ``condition`` until what it returns is true, or ``deadline`` has passed; its last answer.

    Args:
        condition: asked at least once; what it raises ends the wait.
        deadline: on the ``time.monotonic`` clock.
        every_s: seconds between two calls.
        longest_s: the pause grows by half each time, up to so many seconds; 0: it stays the same.
        jitter: vary each pause by half, so that many who wait don't ask at the same time.
    """
    pause = every_s
    while True:
        answer = condition()
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(pause * (0.5 + random.random()) if jitter else pause)
        pause = min(pause * GROWTH, max(longest_s, every_s))
