"""Scheduler, workers and client of one node as forks of one process, which has imported what all of them need.

Dask's imports bound a start: 1.2 s of a core for each of a node's processes, on cores that they share. Here they are
done once. What may differ between processes or can't be forked comes after the fork: the binding and with it UCX, the
run's secret, all threads and connections. On a GPU nothing is forked, because CUDA can't be.

``ForkingProcess`` is the supervisor's side; ``become`` is called in the process that forks, after its imports.
"""

import contextlib
import ctypes
import gc
import json
import os
import select
import sys
import time
from pathlib import Path
from typing import List, Mapping, Optional, Sequence

from gpubench.node.process import TAIL_LINES, Child, Planned, command, die_with_parent
from gpubench.node.spec.memory import killed_for_memory

ROLE = "forks"
PR_SET_NAME = 15  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
NAME_BYTES = 15
ADOPTED_POLL_S = 0.001
ARROWS_THREAD = "jemalloc_bg_thd"
"""Started by the import of pyarrow. A fork is without it, which changes nothing where pyarrow allocates otherwise."""


class ForkedChild(Child):
    """A process of the cluster that another process forks; when that has ended, it is our child."""

    def __init__(self, name: str, cwd: Path, forking: "ForkingProcess") -> None:
        self.name = name
        self.log = cwd / f"{name}.log"
        self.log.touch()
        self._killed_before = killed_for_memory()
        self.pid: Optional[int] = None
        self._forking = forking
        self._code: Optional[int] = None
        self._sent: List[int] = []

    @property
    def code(self) -> Optional[int]:
        """Exit code, None while it lives or is still to be forked; 1 where it never was."""
        # To look may make it known, and tell its end while what was sent before is sent to it.
        if self._code is None and self.pid is None and self._forking.look() and self.pid is None:
            self._code = 1
        if self._code is None and self.pid is not None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    @property
    def starting(self) -> bool:
        return self.code is None and self.pid is None

    def wait(self) -> None:
        while self.code is None:
            time.sleep(ADOPTED_POLL_S)

    def tail(self, lines: int = TAIL_LINES) -> List[str]:
        """The last lines of its log, or of the process that should have forked it."""
        return super().tail(lines) if self.pid is not None else self._forking.process.tail(lines)

    def known(self, pid: int) -> None:
        """It has been forked. What was sent before may have reached only the process that forked it."""
        self.pid = pid
        for number in self._sent:
            self.signal(number)

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that it started, or to the one that is about to fork it."""
        if self.pid is None and self.code is not None:
            return
        if self.pid is None:
            self._sent.append(number)
            self._forking.process.signal(number)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class ForkingProcess:
    """``gpubench WORDS``, which forks what is planned, as its supervisor sees it."""

    def __init__(self, arguments: List[str], planned: Sequence[Planned], env: Mapping[str, str], cwd: Path) -> None:
        self.children = [ForkedChild(process.name, cwd, self) for process in planned]
        self._pipe, report = os.pipe()
        self._text = b""
        members = {
            process.name: {"arguments": process.arguments, "handles": list(process.handles)} for process in planned
        }
        path = cwd / f"{ROLE}.json"
        path.write_text(json.dumps({"report": report, "members": members}), encoding="utf-8")
        handles = [report, *(handle for process in planned for handle in process.handles)]
        _adopt_orphans(wanted=True)
        try:
            self.process = Child(ROLE, command(*arguments, "--members", str(path)), env, cwd, handles)
        finally:
            os.close(report)

    def look(self) -> bool:
        """Read which members have been forked; true if it has ended, so no further one will be."""
        while self._pipe >= 0 and select.select([self._pipe], [], [], 0)[0]:
            data = os.read(self._pipe, 4096)
            self._text += data
            if not data:
                os.close(self._pipe)
                self._pipe = -1
                self.process.wait()
                _adopt_orphans(wanted=False)
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            name, _, pid = line.decode("ascii").rpartition(" ")
            next(child for child in self.children if child.name == name).known(int(pid))
        return self._pipe < 0


def _adopt_orphans(*, wanted: bool) -> None:
    """Whether processes become our children when their parent ends; prctl(2), PR_SET_CHILD_SUBREAPER."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def become(path: Path, supervisor: int) -> List[str]:
    """Fork every member: returns its words in each of them, and ends this process.

    Where an imported library has started a thread, which no fork would have, a member becomes a new Python instead.
    The garbage collector leaves out what the imports made, in the members too (not in one that becomes a new Python):
    it would copy that memory, and take a tenth of a second after each workload. Source: gc.freeze in Python's
    documentation; the time: ``benchmarks/README.md``.
    """
    has_threads = _has_threads()
    gc.freeze()
    plain = json.loads(path.read_text(encoding="utf-8"))
    members, report, us = plain["members"], int(plain["report"]), os.getpid()
    handles = {handle for member in members.values() for handle in member["handles"]}
    ended, ours = os.pipe()  # nobody writes: its end is read when this process, the last that holds it, has ended
    for name, member in members.items():
        if os.fork() == 0:
            os.close(ours)
            for handle in handles - set(member["handles"]):
                os.close(handle)
            _stand_alone(name, path.with_name(f"{name}.log"))
            _entitle(command(*member["arguments"]))
            os.read(ended, 1)
            os.close(ended)
            while os.getppid() == us:  # files are closed a moment earlier
                time.sleep(ADOPTED_POLL_S)
            die_with_parent(supervisor)
            os.write(report, f"{name} {os.getpid()}\n".encode("ascii"))
            os.close(report)
            arguments: List[str] = member["arguments"]
            if has_threads:
                new = command(*arguments)
                os.execv(new[0], new)  # noqa: S606 - no shell
            return arguments
    os._exit(0)


def _entitle(command: List[str]) -> None:
    """Let the process table show this command, as far as there is room where ours stood.

    Source: proc(5), fields arg_start and arg_end of /proc/[pid]/stat.
    """
    if "setproctitle" in sys.modules:  # at its first call it looks for the command that this process began with
        sys.modules["setproctitle"].getproctitle()
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if end > start > 0:
        text = b"\0".join(word.encode("utf-8", "surrogateescape") for word in command)
        ctypes.memmove(start, text[: end - start - 1].ljust(end - start, b"\0"), end - start)


def _has_threads() -> bool:
    """Whether threads run that aren't ended before a fork; OpenBLAS ends its own, and starts them when it needs them.

    Source: OpenBLAS, driver/others/memory.c, openblas_fork_handler.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    names = [(task / "comm").read_text("utf-8").strip() for task in Path("/proc/self/task").iterdir()]
    return len(names) > 1 + (ARROWS_THREAD in names and not _arrow_uses_jemalloc())


def _arrow_uses_jemalloc() -> bool:
    return "pyarrow" not in sys.modules or sys.modules["pyarrow"].default_memory_pool().backend_name == "jemalloc"


def _stand_alone(name: str, log: Path) -> None:
    """A session, a log and a name of its own, and random numbers of its own."""
    os.setsid()
    handle = os.open(str(log), os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(handle, standard)
    os.close(handle)
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode("ascii")[:NAME_BYTES], 0, 0, 0)
    if "numpy" in sys.modules:  # Python's generator is seeded anew by Python
        sys.modules["numpy"].random.seed()
