"""The log of a job that failed: its last line that says why, where the scheduler knows nothing but an exit code."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

from gpubench.schedulers.state import JobState

_TAIL_BYTES, _LONGEST = 65_536, 300
_SAYS_NOTHING = re.compile(
    r"spank|xited with exit code|couldn't start container|printing enroot log|srun: (Job step|Terminating)"
)
"""Lines that only repeat that something failed; the templates' shell knows the first four, too."""
_SPEAKER = re.compile(r"^(slurmstepd: error: |srun: error: |pyxis: +|gpubench: )+")
_REPORT_OF_LSF = re.compile(r"\n-{20,}\nSender: LSF ")
"""It stands behind the output of the job."""
_NOT_SHOWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_NO_REASON = ("", "NonZeroExitCode")


def with_log(state: JobState, log: Path) -> JobState:
    """``state`` with the last words of the log for a reason, where the job failed and the scheduler gives none."""
    if not state.end or not state.exit_code or state.reason not in _NO_REASON:
        return state
    words = last_words(log)
    return dataclasses.replace(state, reason=f"its log ends: {words}" if words else state.reason)


def last_words(log: Path) -> str:
    """The last line of a log that says more than that something failed; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    reports = list(_REPORT_OF_LSF.finditer(text))
    text = text[: reports[-1].start()] if reports else text
    lines = (_NOT_SHOWN.sub("", line).strip() for line in reversed(text.splitlines()))
    found = next((line for line in lines if line and not _SAYS_NOTHING.search(line)), "")
    return _SPEAKER.sub("", found)[:_LONGEST]
