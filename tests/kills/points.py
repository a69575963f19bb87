"""Where a campaign is killed: a process of it at a random moment, or at its n-th rename, fsync or link."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cli.campaigns import Front, cluster_processes, role_processes, until

CALLS = {"rename": "rename,renameat,renameat2", "fsync": "fsync,fdatasync", "link": "link,linkat"}
CUT = ("= ?", "<unfinished ...>")
"""How strace writes a call from which nobody came back."""

SHIM = """#!{bash}
if [ "$1" = job.sh ]; then exec {words} {bash} "$@"; fi
exec {bash} "$@"
"""

SPAN_S = {"front end": 12.0, "job.sh": 6.5, "supervisor": 3.0, "scheduler": 2.5, "worker": 2.0, "client": 1.8}
"""Within which a process is killed after it was seen, by role: about as long as it lives."""
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


@dataclasses.dataclass(frozen=True)
class Call:
    """The ``number``-th call of ``CALLS`` (from 1) by the front end, or by each process that the job script starts."""

    role: str
    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}, {self.call} {self.number}"

    def start(self, directory: Path, words: list[str], env: dict[str, str]) -> Front:
        calls = CALLS[self.call]
        inject = ["-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={self.number}"]
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
        front.end()
        log = self._log(front.directory)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        cut = [
            line for line in lines if line.endswith(CUT)
        ]  # others are killed too: a supervisor ends its processes so
        return f"strace killed at {len(cut)} call(s), first {_short(cut[0])}" if cut else ""

    @staticmethod
    def _log(directory: Path) -> Path:
        return directory / "strace.log"


Point = Moment | Call


def moments(seed: int, count: int, *, interleaved: bool = False) -> Iterator[Moment]:
    """So many, every role in turn, the rest drawn from the seed."""
    rng = random.Random(seed)
    spans = {**SPAN_S, CONDUCTOR: SPAN_S["job.sh"]} if interleaved else SPAN_S
    for number in range(count):
        role = list(spans)[number % len(spans)]
        which = rng.randint(1, 2) if role in ("supervisor", *OF_A_CLUSTER) else 1
        yield Moment(role, which, rng.uniform(0, spans[role]))


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
