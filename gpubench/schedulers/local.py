"""Scheduler ``local``: this machine runs one job at a time, and the front end that submitted it is its queue.

A job is a session of processes that ends when its front end does, also by kill -9: the supervisors watch the pipe that
the front end holds. Two campaigns at once would measure each other, so a lock that the kernel releases with its last
holder lets one job run after the other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from gpubench.errors import MissingToolError, SchedulerError
from gpubench.files import write_atomically, writing
from gpubench.schedulers.state import JobState

STATE_FILE = "local.json"
LOG = "job.log"
CANCEL_S = 60.0


@dataclasses.dataclass
class Job:
    """A running job script. ``close`` is called once, when it has ended."""

    process: subprocess.Popen[bytes]
    job_dir: Path

    def ended(self) -> bool:
        """Whether the script has ended."""
        return self.process.poll() is not None

    def cancel(self) -> None:
        """Ask the script to end; its supervisors clean up behind themselves."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def close(self) -> int:
        """Wait for the end; returns the exit code."""
        try:
            code = self.process.wait(CANCEL_S)
        except subprocess.TimeoutExpired:
            _kill_session(self.process.pid)
            code = self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        _remember(self.job_dir, self.process.pid, code)
        return code


def _kill_session(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def lock_path() -> Path:
    """The file whose lock says that a job of this user is running on this machine."""
    # The home directory may be shared by many machines; each has a queue of its own.
    return Path(platformdirs.user_state_dir("gpubench")) / f"queue-{socket.gethostname()}.lock"


@contextlib.contextmanager
def turn(job_dir: Path, waiting: Callable[[str], None]) -> Iterator[int]:
    """Wait until no other job of this user runs on this machine; yields the lock for the job to hold.

    Args:
        job_dir: says to others who holds the machine.
        waiting: called with the holder's words about every second while waiting.
    """
    path = lock_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MissingToolError(
            f"can't open the queue's lock {path}: {error.strerror}", then="set XDG_STATE_HOME to a folder of yours"
        ) from None
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting(os.pread(handle, 4096, 0).decode("utf-8", "replace").strip())
                time.sleep(0.5)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{job_dir} (front end: process {os.getpid()})".encode(), 0)
        yield handle
    finally:
        os.close(handle)


def submit(job_dir: Path, environ: Mapping[str, str], hold: int | None) -> Job:
    """Start ``job.sh`` in a session of its own; the job holds the machine's lock as long as any process of it lives.

    Args:
        job_dir: where the script stands.
        environ: the whole environment of the job.
        hold: the lock from ``turn``; None: of a job that joins one which holds it.

    Raises:
        SchedulerError: bash can't be started.
    """
    log = job_dir / LOG
    try:
        with log.open("ab") as out:
            process = subprocess.Popen(
                ["bash", "job.sh"],
                cwd=job_dir,
                env={**environ, "GPUBENCH_STOP_AT_EOF": "1"},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=() if hold is None else (hold,),
            )
    except OSError as error:
        raise SchedulerError(f"can't start {job_dir / 'job.sh'}: {error}") from None
    _remember(job_dir, process.pid, None)
    return Job(process, job_dir)


def state(job_dir: Path) -> JobState:
    """How the script that was last started from ``job_dir`` stands; with its last line where it failed."""
    known = _known(job_dir)
    if known is None:
        return JobState("unsubmitted")
    job_id, code = str(known["pid"]), known["code"]
    if code is None:
        running = bool(known["started"]) and _start_time(known["pid"]) == known["started"]
        return JobState("running" if running else "ended", "RUNNING" if running else "KILLED", job_id=job_id)
    return JobState("ended", "FAILED" if code else "COMPLETED", _last_line(job_dir) if code else "", code, job_id)


def _remember(job_dir: Path, pid: int, code: int | None) -> None:
    known = json.dumps({"pid": pid, "started": _start_time(pid), "code": code})
    path = job_dir / STATE_FILE
    try:
        write_atomically(path, known)  # whoever asks meanwhile reads the old or the new
    except MissingToolError:
        with writing(path):
            path.write_text(known, encoding="utf-8")  # over the old one, which fits on a full disk, too


def _known(job_dir: Path) -> dict[str, Any] | None:
    try:
        known = json.loads((job_dir / STATE_FILE).read_text(encoding="utf-8"))
        return {"pid": known["pid"], "started": known["started"], "code": known["code"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _last_line(job_dir: Path) -> str:
    try:
        lines = (job_dir / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def cancel(job_dir: Path) -> None:
    """End the script that was last started from ``job_dir``, and come back when it has ended."""
    known = _known(job_dir)
    if known is None or not state(job_dir).alive:
        return
    pid = known["pid"]
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + CANCEL_S
    while state(job_dir).alive:
        if time.monotonic() > deadline:
            _kill_session(pid)
            return
        time.sleep(0.1)


def _start_time(pid: int) -> str:
    """When the process started, in ticks since boot: with the id it names one process; proc(5), field 22 of stat."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # a name may hold any byte
    except OSError:
        return ""
    return "" if fields[0] == b"Z" else fields[19].decode("ascii")
