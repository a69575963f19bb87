"""A command as it is typed: how long it takes and what it uses."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Used:
    """Seconds by the clock, seconds of all CPUs, and the most bytes that the command held at once (``ru_maxrss``)."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def timed(words: Sequence[str | Path], directory: Path | None = None) -> Used:
    """Run a command in ``directory``; raises AssertionError if it fails.

    No ``PYTHON*`` is handed on: with ``PYTHONDONTWRITEBYTECODE`` what was never imported before is compiled every time.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        process = subprocess.Popen(words, cwd=directory, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        assert process.returncode == 0, said.read()[-2000:]
    return Used(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
