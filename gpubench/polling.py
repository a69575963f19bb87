"""Waiting for what nobody announces: a file, a job's state, a lock."""

import math
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def poll_until(
    read: Callable[[], Value],
    arrived: Callable[[Value], object] = bool,
    *,
    interval_s: float,
    timeout_s: float = math.inf,
    growth: float = 1.0,
    longest_s: float = math.inf,
) -> Value:
    """Call ``read`` until ``arrived`` is true of its value or the time is over; returns the last value.

    The caller sees by the value whether the event came. ``read`` is called at least once, and once more after the last
    pause.

    Args:
        read: what is looked at. An exception of it ends the wait.
        arrived: whether its value is the event; by default, whether it is true.
        interval_s: seconds between two looks.
        timeout_s: seconds after which no further pause begins.
        growth: factor by which each interval is longer than the one before; 1: all are equal.
        longest_s: no interval grows beyond it.
    """
    deadline = time.monotonic() + timeout_s
    while not arrived(value := read()) and time.monotonic() <= deadline:
        time.sleep(interval_s)
        interval_s = min(interval_s * growth, longest_s)
    return value
