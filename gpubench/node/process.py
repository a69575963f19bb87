"""Child processes of a supervisor: the command that starts one, its output and its end."""

import contextlib
import ctypes
import dataclasses
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Optional, Sequence

from gpubench.node import scratch
from gpubench.node.spec.memory import killed_for_memory
from gpubench.node.workloads.clock import poll_until

PR_SET_PDEATHSIG = 1  # linux/prctl.h
TAIL_LINES = 20
MOST_LINES, MOST_WORDS = 400, 300
"""Lines at the end of a log in which an error may stand, and characters of an error that are kept."""
TRACEBACK = "Traceback (most recent call last):"
RAISED_FROM = "The above exception was the direct cause of the following exception:"
LOGGED = re.compile(r"^[\d-]+ [\d:,]+ - \S+ - [A-Z]+ - ")
"""What distributed writes before every message."""
PARTING = (" - End worker", " - End scheduler")
"""The last line of dask's processes, however they end."""
POLL_S = 0.02
EXIT_DISK = 74
"""How a process of a run ends whose disk failed, perhaps for a moment only (EX_IOERR of sysexits.h)."""


def die_with_parent(parent: Optional[int]) -> None:
    """Ask the kernel to kill this process when its parent (process id ``parent``) dies, however it dies."""
    if parent is None:  # started by hand
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


@dataclasses.dataclass(frozen=True)
class Planned:
    """A process of the cluster that is to start: its name, arguments after ``gpubench``, and handles that it gets."""

    name: str
    arguments: List[str]
    handles: Sequence[int] = ()


class Child:
    """One process of the cluster, in its own session, with its own log file."""

    def __init__(
        self, name: str, command: List[str], env: Mapping[str, str], cwd: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self.log = cwd / (f"{name}.log")
        self._killed_before = killed_for_memory()
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                env=dict(env),
                cwd=str(cwd),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=pass_fds,
            )

    @property
    def code(self) -> Optional[int]:
        """Exit code, None while it lives."""
        return self.process.poll()

    @property
    def starting(self) -> bool:
        """Whether it is still to be forked: no signal tells its supervisor of that."""
        return False

    def wait(self) -> None:
        self.process.wait()

    def cause(self) -> Dict[str, object]:
        """How it ended, with its last log lines; why it could write none, if so."""
        disk = scratch.fault(self.log.parent) or ("its files" if self.code == EXIT_DISK else "")
        how = describe_exit(self.code)
        if self.code == -signal.SIGKILL and killed_for_memory() > self._killed_before:
            how += " by the kernel, for lack of memory"
        message = self._last_words() if self.code is not None and self.code > 0 else ""
        how += f": {message}" if message else ""
        return {"process": self.name, "how": how, "last_lines": self.tail(), **({"disk": disk} if disk else {})}

    def _last_words(self) -> str:
        """What it says of its end: its last line, or, of an error that was raised from another one, that of the first.

        "Scheduler failed to start." says nothing.
        """
        lines = [line for line in self.tail(MOST_LINES) if line.strip() and not line.endswith(PARTING)]
        message = lines[-1] if lines else ""
        begins = [at for at, line in enumerate(lines) if line == TRACEBACK]
        is_its_end = begins and sum(not line.startswith(" ") for line in lines[begins[-1] + 1 :]) == 1
        while is_its_end and begins and lines[begins[-1] - 1 : begins[-1]] == [RAISED_FROM]:
            message = lines[begins.pop() - 2]
        return LOGGED.sub("", message.strip())[:MOST_WORDS]

    def tail(self, lines: int = TAIL_LINES) -> List[str]:
        with contextlib.suppress(OSError):
            text = self.log.read_bytes()[-64 * 1024 :].decode("utf-8", "replace")
            return [line.rstrip() for line in text.splitlines()[-lines:]]
        return []

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def describe_exit(code: Optional[int]) -> str:
    """``killed by SIGKILL`` or ``exit code 3``."""
    if code is None:
        return "still running"
    if code < 0:
        named = -code in {item.value for item in signal.Signals}
        return f"killed by {signal.Signals(-code).name if named else f'signal {-code}'}"
    return f"exit code {code}"


def stop_all(children: Iterable[Child], grace_s: float) -> None:
    """Ask the children to end, then make them; returns when none is left."""
    alive = list(children)
    for child in alive:
        child.signal(signal.SIGTERM)
        child.signal(signal.SIGCONT)  # a stopped process receives nothing
    poll_until(lambda: all(child.code is not None for child in alive), time.monotonic() + grace_s, POLL_S)
    for child in alive:
        child.signal(signal.SIGKILL)  # also children of a dead child, in its session
    for child in alive:
        child.wait()


def command(*arguments: str) -> List[str]:
    """The command ``gpubench WORDS`` from the same file as this process: never by ``-m``, which looks in the cwd."""
    return [sys.executable, archive(), *arguments]


def role_words(role: str, spec_path: Path, *options: str) -> List[str]:
    """Words after ``gpubench`` that start ``role`` as a child of this process."""
    return ["run", "--role", role, "--spec", str(spec_path), "--parent", str(os.getpid()), *options]


def archive() -> str:
    return os.path.abspath(sys.argv[0])  # noqa: PTH100 - no link is followed: the path is what the user sees


def hash_of_archive() -> str:
    """SHA-256 of the ``node.pyz`` that this very module was imported from (not of another copy)."""
    imported_from = __file__.partition(".pyz")[0] + ".pyz"
    if not Path(imported_from).is_file():
        return f"not from an archive: {__file__}"
    return hashlib.sha256(Path(imported_from).read_bytes()).hexdigest()
