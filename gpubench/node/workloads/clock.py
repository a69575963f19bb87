"""The time of day, as the job's script began to count it: a clock that is set meanwhile moves no record of the job.

And waiting for what nobody announces: ask again until it is there or a deadline has passed.
"""

import functools
import os
import random
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Callable, Optional, TypeVar

VARIABLE = "GPUBENCH_CLOCK"
"""What the script exports (``places.sh.j2``): its machine's boot id, the seconds since that boot and since 1970."""


def now() -> float:
    """Seconds since 1970. By this machine's own clock where the script ran on another one, or was none."""
    ahead = _ahead(os.environ.get(VARIABLE, ""))
    return time.time() if ahead is None else time.clock_gettime(time.CLOCK_BOOTTIME) + ahead


@functools.lru_cache(maxsize=1)
def _ahead(text: str) -> Optional[float]:
    """Seconds from ``CLOCK_BOOTTIME`` to the script's time; to 0.01 s, as ``/proc/uptime`` has them."""
    fields = text.split()
    try:
        if len(fields) == 3 and fields[0] == Path("/proc/sys/kernel/random/boot_id").read_text().strip():
            # Of the same file as in the script: some containers have an uptime of their own there.
            since = float(Path("/proc/uptime").read_text().split()[0]) - float(fields[1])
            return float(fields[2]) + since - time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError):
        pass
    return None


def utc_now() -> str:
    """``now``, UTC, ISO 8601 with microseconds."""
    return datetime.fromtimestamp(now(), timezone.utc).isoformat(timespec="microseconds")


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
