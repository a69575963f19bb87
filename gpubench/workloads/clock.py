"""The time of day, as the job's script began to count it: a clock that is set meanwhile moves no record of the job."""

import os
import time
from datetime import datetime, timezone
from pathlib import Path

VARIABLE = "GPUBENCH_CLOCK"
"""What the script exports (``places.sh.j2``): its machine's boot id, the seconds since that boot and since 1970."""


def now() -> float:
    """Seconds since 1970. By this machine's own clock where the script ran on another one, or was none."""
    words = os.environ.get(VARIABLE, "").split()
    try:
        if len(words) == 3 and words[0] == Path("/proc/sys/kernel/random/boot_id").read_text().strip():
            return float(words[2]) + float(Path("/proc/uptime").read_text().split()[0]) - float(words[1])
    except (OSError, ValueError):
        pass
    return time.time()


def utc_now() -> str:
    """``now``, UTC, ISO 8601 with microseconds."""
    return datetime.fromtimestamp(now(), timezone.utc).isoformat(timespec="microseconds")
