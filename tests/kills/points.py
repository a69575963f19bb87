"""What happens to a campaign.

A process of it is killed at a random moment or at its n-th rename, fsync or link; such a call fails once, as on a bad
disk; or a file system is full.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from tests.cli.campaigns import Front, cluster_processes, role_processes, until

CALLS = {
    "write": "write,pwrite64,writev",
    "rename": "rename,renameat,renameat2",
    "fsync": "fsync,fdatasync",
    "link": "link,linkat",
    "mkdir": "mkdir,mkdirat",
    "unlink": "unlink,unlinkat",
}
LONGEST_S = 900.0
ERRORS = ("ENOSPC", "EDQUOT", "EROFS", "EIO")
CUT = ("= ?", "<unfinished ...>")
"""How strace writes a call from which nobody came back."""
INJECTED = "(INJECTED)"
"""How it ends the line of a call that it let fail."""

SHIM = """#!{bash}
if [ "$1" = job.sh ]; then exec {words} {bash} "$@"; fi
exec {bash} "$@"
"""

SPANS = {"front end": 0.95, "job.sh": 0.54, "supervisor": 0.25, "scheduler": 0.2, "worker": 0.16, "client": 0.14}
"""Within which a process is killed after it was seen, by role: about as long as it lives.

In seconds of a campaign that nobody kills: on a faster machine, a span of fixed seconds ends behind the process's life.
"""
OF_A_CLUSTER = ("scheduler", "worker", "client")
"""A supervisor sees such an end and records it: the run has failed, which is a finding and no hole."""


CONDUCTOR = "conductor"
"""Of interleaved blocks only."""


@dataclasses.dataclass(frozen=True)
class Moment:
    """The ``number``-th process of a role (from 1; there is one in each run), so many seconds after it was seen."""

    role: str
    number: int
    after_s: float

    def __str__(self) -> str:
        return f"{self.role} {self.number}, {self.after_s:.2f} s after its start"

    @property
    def kind(self) -> str:
        """What points are counted by."""
        return f"{self.role} at a moment"

    def start(self, directory: Path, words: list[str], env: dict[str, str]) -> Front:
        return Front(directory, *words, env=env)

    def strike(self, front: Front) -> str:
        """Kill it; what was killed, in words, empty where it had ended before."""
        seen: list[int] = []

        def found() -> int | None:
            for pid in _pids(self.role, front):
                if pid not in seen:
                    seen.append(pid)
            return seen[self.number - 1] if len(seen) >= self.number else None

        until(lambda: found() or front.process.poll() is not None, f"the {self.role}")
        pid = found()
        with contextlib.suppress(subprocess.TimeoutExpired):
            front.process.wait(self.after_s)  # its end comes before, or the moment
        if pid is None or pid not in _pids(self.role, front):
            return ""
        os.kill(pid, signal.SIGKILL)
        return "killed"

    def explains(self, reason: str) -> bool:
        """Whether a run may have failed for this reason: that is a finding, and no hole."""
        return self.role in OF_A_CLUSTER and "SIGKILL" in reason

    def over(self, directory: Path) -> None:
        """Nothing to take back."""


@dataclasses.dataclass(frozen=True)
class Call:
    """The ``number``-th call of ``CALLS`` (from 1) by the front end, or by each process that the job script starts."""

    role: str
    call: str
    number: int
    _marks: ClassVar[tuple[str, ...]] = CUT  # others are killed too: a supervisor ends its processes so

    def __str__(self) -> str:
        return f"{self.role}, {self.call} {self.number}"

    @property
    def kind(self) -> str:
        """What points are counted by."""
        return f"{self.role} at {self.call}"

    def start(self, directory: Path, words: list[str], env: dict[str, str]) -> Front:
        calls = CALLS[self.call]
        inject = ["-e", f"trace={calls}", "-e", f"inject={calls}:{self._injected()}:when={self.number}"]
        strace = ["strace", "-qqq", "-o", str(self._log(directory)), *inject]
        if self.role == "front end":
            return Front(directory, *words, env=env, under=[*strace, "--"])
        tools = directory / "tools"
        tools.mkdir()
        shim = SHIM.format(bash=shutil.which("bash"), words=" ".join(f"'{word}'" for word in [*strace, "-f", "--"]))
        (tools / "bash").write_text(shim)
        (tools / "bash").chmod(0o755)
        return Front(directory, *words, env={**env, "PATH": f"{tools}:{os.environ['PATH']}"})

    def strike(self, front: Front) -> str:
        """Wait for the end; which call strace killed at, empty where nobody makes so many."""
        front.end(LONGEST_S)
        log = self._log(front.directory)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        struck = [line for line in lines if line.endswith(self._marks)]
        return f"strace struck at {len(struck)} call(s), first {_short(struck[0])}" if struck else ""

    def explains(self, reason: str) -> bool:  # noqa: ARG002
        """Whether a run may have failed for this reason: that is a finding, and no hole."""
        return False

    def over(self, directory: Path) -> None:
        """Nothing to take back."""

    def _injected(self) -> str:
        return "signal=KILL"

    @staticmethod
    def _log(directory: Path) -> Path:
        return directory / "strace.log"


@dataclasses.dataclass(frozen=True)
class Fault(Call):
    """The ``number``-th call fails with ``error`` (``ENOSPC``); only that one, in each process of the role."""

    error: str
    _marks: ClassVar[tuple[str, ...]] = (INJECTED,)

    def __str__(self) -> str:
        return f"{self.role}, {self.call} {self.number}: {self.error}"

    @property
    def kind(self) -> str:
        return f"{self.role}, {self.call} fails with {self.error}"

    def explains(self, reason: str) -> bool:
        return os.strerror(getattr(errno, self.error)) in reason

    def _injected(self) -> str:
        return f"error={self.error}"


@dataclasses.dataclass(frozen=True)
class Full:
    """The campaigns' directory (``outputs``) or the node's scratch directory (``scratch``) holds only so many KiB."""

    role: str
    kib: int

    def __str__(self) -> str:
        return f"{self.role} of {self.kib} KiB"

    @property
    def kind(self) -> str:
        """What points are counted by."""
        return f"{self.role} is full"

    def start(self, directory: Path, words: list[str], env: dict[str, str]) -> Front:
        self._mount("-o", f"size={self.kib}k", "-t", "tmpfs", "tmpfs", self._folder(directory))
        return Front(directory, *words, env=env)

    def strike(self, front: Front) -> str:
        """Wait for the end, then make room; empty where nothing went wrong."""
        code = front.end(LONGEST_S)
        self._mount("-o", "remount,size=1g", self._folder(front.directory))
        return "" if code == 0 else front.output.strip().splitlines()[-1].partition(";")[0][-80:]

    def explains(self, reason: str) -> bool:
        """Whether a run may have failed for this reason."""
        return os.strerror(errno.ENOSPC) in reason

    def over(self, directory: Path) -> None:
        """Back to the directory below."""
        subprocess.run(["umount", "--lazy", self._folder(directory)], check=True)

    def _folder(self, directory: Path) -> Path:
        folder = directory / self.role
        folder.mkdir(exist_ok=True)
        return folder

    @staticmethod
    def _mount(*words: str | Path) -> None:
        subprocess.run(["mount", *words], check=True)


Point = Moment | Call | Full


def moments(seed: int, count: int, campaign_s: float, *, interleaved: bool = False) -> Iterator[Moment]:
    """So many, every role in turn, the rest drawn from the seed.

    ``campaign_s``: seconds of a campaign that nobody kills.
    """
    rng = random.Random(seed)
    spans = {**SPANS, CONDUCTOR: SPANS["job.sh"]} if interleaved else SPANS
    for number in range(count):
        role = list(spans)[number % len(spans)]
        which = rng.randint(1, 2) if role in ("supervisor", *OF_A_CLUSTER) else 1
        yield Moment(role, which, rng.uniform(0, spans[role] * campaign_s))


def _pids(role: str, front: Front) -> list[int]:
    """Living processes of the role, the oldest first."""
    if role == "front end":
        return [front.process.pid] if front.process.poll() is None else []
    outputs = front.directory / "outputs"
    if role in OF_A_CLUSTER:
        return sorted(role_processes(outputs, role))
    of: dict[str, Callable[[str], bool]] = {
        "job.sh": lambda command: "job.sh" in command,
        CONDUCTOR: lambda command: "node.pyz conduct" in command,
        "supervisor": lambda command: "node.pyz run" in command and "--parent" not in command,
    }
    return sorted(pid for pid, command in cluster_processes(outputs).items() if of[role](command))


def _short(line: str) -> str:
    """Name of the call and of its file, without a test's own directory."""
    name, _, rest = line.partition("(")
    path = next((word for word in rest.split('"')[1::2]), "")
    return f"{name.split()[-1]}({path.rpartition('/')[2]})"
