"""The time of day, as the job's script began to count it: a clock that is set meanwhile moves no record of the job."""

import functools
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

VARIABLE = "GPUBENCH_CLOCK"
"""What the script exports (``places.sh.j2``): its machine's boot id, the seconds since that boot and since 1970."""


def now() -> float:
    """Seconds since 1970. By this machine's own clock where the script ran on another one, or was none."""
    ahead = _ahead(os.environ.get(VARIABLE, ""))
    return time.time() if ahead is None else time.clock_gettime(time.CLOCK_BOOTTIME) + ahead


@functools.lru_cache(maxsize=1)
def _ahead(said: str) -> Optional[float]:
    """Seconds from ``CLOCK_BOOTTIME`` to the script's time; to 0.01 s, as ``/proc/uptime`` has them."""
    words = said.split()
    try:
        if len(words) == 3 and words[0] == Path("/proc/sys/kernel/random/boot_id").read_text().strip():
            # Of the same file as in the script: some containers have an uptime of their own there.
            since = float(Path("/proc/uptime").read_text().split()[0]) - float(words[1])
            return float(words[2]) + since - time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError):
        pass
    return None


def utc_now() -> str:
    """``now``, UTC, ISO 8601 with microseconds."""
    return datetime.fromtimestamp(now(), timezone.utc).isoformat(timespec="microseconds")
