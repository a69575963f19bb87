"""How a submitted job stands, in the same words for every scheduler; of a job that failed, what its log says."""

import dataclasses
import datetime as dt
import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Phase = Literal["unsubmitted", "pending", "running", "ended", "unknown"]


class Word(NamedTuple):
    """What a word of a scheduler means: the phase, and words for a person where the scheduler gives no reason."""

    phase: Phase
    meaning: str = ""


_TAIL_BYTES, _LONGEST = 65_536, 300
_SAYS_NOTHING = re.compile(
    r"spank|xited with (exit|return) code|couldn't start container|container was not started|terminated unexpectedly"
    r"|printing enroot log|\*\*\* (JOB|STEP) \S+ ON \S+ CANCELLED AT|srun: (Job step|Terminating)"
)
"""Lines that only repeat that something failed; the templates' shell knows those of pyxis and enroot, too."""
_NAMES_A_CAUSE = re.compile(r"\[ERROR\]|FATAL ERROR|failed because|source path does not exist")
"""In lines of enroot, unsquashfs and pyxis: the first one wins over what follows from it."""
_SPEAKER = re.compile(r"^(slurmstepd(-\S+)?: error: |srun: error: |pyxis:( +|$)|gpubench: |\[ERROR\] )+")
_OURS = "gpubench: "
_REPORT_OF_LSF = re.compile(r"\n-{20,}\nSender: LSF ")
"""It stands behind the output of the job."""
_NOT_SHOWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_NO_REASON = ("", "NonZeroExitCode")


@dataclasses.dataclass(frozen=True)
class JobState:
    """One job as its scheduler tells it.

    Args:
        phase: ``unknown`` when nothing says that it lives, and nothing beyond doubt that it has ended.
        word: the scheduler's own, like ``COMPLETED`` or ``NODE_FAIL``.
        reason: the scheduler's, or ours; empty where there is none, whatever word the scheduler has for that.
        exit_code: of the job script; None while it isn't known.
        job_id: the scheduler's.
        hosts: the nodes, as the scheduler writes them.
        orphaned: its front end is dead, and it can't live long without.
    """

    phase: Phase
    word: str = ""
    reason: str = ""
    exit_code: int | None = None
    job_id: str = ""
    hosts: str = ""
    orphaned: bool = False

    @property
    def alive(self) -> bool:
        """Whether it is known to wait or run; an unknown job may do so, too."""
        return self.phase in ("pending", "running")

    @property
    def over(self) -> bool:
        """Whether no run can come from it any more."""
        return self.phase in ("unsubmitted", "ended")

    @property
    def text(self) -> str:
        """How it stands, and where."""
        return " ".join(filter(None, (self.word or self.phase, self.hosts)))

    @property
    def standing(self) -> str:
        """How it stands, and where; of one that waits or runs also why it doesn't go on."""
        return self.text + (f": {self.reason}" if not self.over and self.reason else "")

    @property
    def doubt(self) -> str:
        """Why nobody knows whether it has ended; empty where that is known."""
        which = f"job {self.job_id}" if self.job_id else "it"
        return f"whether {which} has ended is unknown: {self.reason}" if self.phase == "unknown" else ""

    @property
    def end(self) -> str:
        """How it ended, in few words; empty while it hasn't, or when all went well."""
        if self.phase != "ended" or (self.word in ("", "COMPLETED") and not self.exit_code):
            return ""
        code = f", exit code {self.exit_code}" if self.exit_code else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.word}{code}{reason}"


def judged(
    meanings: Mapping[str, Word],
    word: str,
    *,
    job_id: str,
    hosts: str = "",
    reason: str = "",
    exit_code: int | None = None,
    title: str,
) -> JobState:
    """The state of a job in its scheduler's word; a word that ``meanings`` doesn't have is unknown."""
    meaning = meanings.get(word)
    if meaning is None:
        reason = (
            f"{title} says {word or 'nothing'}, a state that gpubench doesn't know{f' ({reason})' if reason else ''}"
        )
        return JobState("unknown", word, reason, None, job_id, hosts)
    code = exit_code if meaning.phase == "ended" else None
    return JobState(meaning.phase, word, reason or meaning.meaning, code, job_id, hosts)


def declared(by: Mapping[str, str] | None, state: JobState) -> JobState:
    """``state``, or the end that a user has declared of a job of which nobody knows more."""
    if by is None or state.phase != "unknown":
        return state
    return JobState("ended", "DECLARED ENDED", f"{by['user']} said so at {by['at']}", None, state.job_id)


def declaration() -> dict[str, str]:
    """Who says now that a job has ended."""
    return {"user": current_user(), "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds")}


def current_user() -> str:
    """By the system's own list: the shell's variables may name another one."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container
        return str(os.getuid())


def with_log(state: JobState, log: Path) -> JobState:
    """``state`` with the last words of the log for a reason, where the job failed and the scheduler gives none."""
    if not state.end or not state.exit_code or state.reason not in _NO_REASON:
        return state
    line = last_line(log)
    return dataclasses.replace(state, reason=f"its log ends: {line}" if line else state.reason)


def last_line(log: Path) -> str:
    """The first line at a log's end that names a cause, else the last one that says more than that something failed.

    Empty where there is none.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    reports = list(_REPORT_OF_LSF.finditer(text))
    text = text[: reports[-1].start()] if reports else text
    lines = [line for line in map(_shown, text.splitlines()) if line and not _SAYS_NOTHING.search(line)]
    last = lines[-1:]
    if not last or not last[0].startswith(_OURS):  # the script says last of all why it ended
        last = [line for line in lines if _NAMES_A_CAUSE.search(line)][:1] or last
    return _SPEAKER.sub("", "".join(last))[:_LONGEST]


def _shown(line: str) -> str:
    """Without colours, and empty where only its speaker is left."""
    plain = _NOT_SHOWN.sub("", line).strip()
    return plain if _SPEAKER.sub("", plain) else ""
