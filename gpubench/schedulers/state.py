"""How a submitted job stands, in the same words for every scheduler."""

from __future__ import annotations

import dataclasses
from typing import Literal

Phase = Literal["unsubmitted", "pending", "running", "ended", "unknown"]


@dataclasses.dataclass(frozen=True)
class JobState:
    """One job as its scheduler tells it.

    Args:
        phase: ``unknown`` when the scheduler no longer knows it and the job left no exit code.
        word: the scheduler's own, like ``COMPLETED`` or ``NODE_FAIL``.
        reason: the scheduler's, or ours; empty where there is none, whatever word the scheduler has for that.
        exit_code: of the job script; None while it isn't known.
        job_id: the scheduler's.
        hosts: the nodes, as the scheduler writes them.
        forsaken: its front end is dead, and it can't live long without.
    """

    phase: Phase
    word: str = ""
    reason: str = ""
    exit_code: int | None = None
    job_id: str = ""
    hosts: str = ""
    forsaken: bool = False

    @property
    def alive(self) -> bool:
        """Whether runs may still come from it; of an unknown one nobody can say so."""
        return self.phase in ("pending", "running")

    @property
    def end(self) -> str:
        """How it ended, in few words; empty while it hasn't, or when all went well."""
        if self.phase != "ended" or (self.word in ("", "COMPLETED") and not self.exit_code):
            return ""
        code = f", exit code {self.exit_code}" if self.exit_code else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.word}{code}{reason}"
