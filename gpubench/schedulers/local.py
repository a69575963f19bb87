"""Scheduler ``local``: this machine runs one job at a time, and the front end that submitted it is its queue.

A job is a session of processes that ends when its front end does, also by kill -9: the supervisors watch the pipe that
the front end holds. Two campaigns at once would measure each other, so a lock that the kernel releases with its last
holder lets one job run after the other.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
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

from gpubench.errors import DataError, MissingToolError, SchedulerError
from gpubench.files import write_atomically, writing
from gpubench.polling import poll_until
from gpubench.schedulers.state import JobState, Phase, declaration, declared

STATE_FILE = "local.json"
LOG = "job.log"
CANCEL_S = 60.0
_waits: list[float] = []
"""Seconds of each time that this process waited for the machine."""


@dataclasses.dataclass
class Job:
    """A running job script. ``close`` is called once, when it has ended."""

    process: subprocess.Popen[bytes]
    job_dir: Path

    def ended(self) -> bool:
        return self.process.poll() is not None

    def cancel(self) -> None:
        """Ask the script to end; its supervisors clean up behind themselves."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def close(self) -> int:
        """Wait for the end of the script and of its supervisors, which outlive it where it is killed; the exit code."""
        try:
            code = self.process.wait(CANCEL_S)
        except subprocess.TimeoutExpired:
            _kill_session(self.process.pid)
            code = self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        _await_end(lambda: _has_members(self.process.pid), self.process.pid)
        _remember(self.job_dir, self.process.pid, code)
        return code


def _kill_session(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _await_end(alive: Callable[[], bool], leader: int) -> None:
    """Come back when nothing is alive any more; after ``CANCEL_S`` it is killed, and has as long again to end."""
    for last_resort in (_kill_session, lambda _: None):
        if not poll_until(alive, lambda lives: not lives, interval_s=0.1, timeout_s=CANCEL_S):
            return
        last_resort(leader)


def lock_path() -> Path:
    """The file whose lock says that a job of this user is running on this machine."""
    # The home directory may be shared by many machines; each has a queue of its own.
    return Path(platformdirs.user_state_dir("gpubench")) / f"queue-{socket.gethostname()}.lock"


@contextlib.contextmanager
def acquire_machine(job_dir: Path, waiting: Callable[[str], None], ended_by: str = "") -> Iterator[int]:
    """First come, first served; see ``LocalScheduler``."""
    path = lock_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MissingToolError(
            f"can't open the queue's lock {path}: {error.strerror}",
            then="set XDG_STATE_HOME to a folder that you may write",
        ) from None
    began = time.monotonic()
    try:
        try:
            with _place_in_queue(path) as is_first:
                poll_until(lambda: _try_lock(handle, waiting, is_first), interval_s=0.5)
        finally:
            _waits.append(time.monotonic() - began)
        os.ftruncate(handle, 0)
        how = f"'{ended_by}' ends it" if ended_by else f"front end: process {os.getpid()}"
        os.pwrite(handle, f"{job_dir.absolute()} ({how})".encode(), 0)
        yield handle
    finally:
        os.close(handle)


def waited_s() -> float:
    """Seconds that this process has waited for other jobs on this machine so far."""
    return sum(_waits)


@contextlib.contextmanager
def _place_in_queue(lock: Path) -> Iterator[Callable[[], bool]]:
    """A file per process that waits, locked by it, so that one that was killed keeps nobody behind it waiting.

    Yields whether nobody waits who came before; where no file can be made, everybody is first.
    """
    path = lock.with_name(f"{lock.name}.{time.time_ns():020d}-{os.getpid()}")

    def is_first() -> bool:
        before = (other for other in lock.parent.glob(f"{lock.name}.*") if other.name < path.name)
        return not any(map(_is_held, before))

    try:
        file = path.open("w")
    except OSError:
        yield lambda: True
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield is_first
        finally:
            path.unlink(missing_ok=True)


def _is_held(path: Path) -> bool:
    """Whether the process that waits by this file lives; else the file is removed."""
    with contextlib.suppress(OSError), path.open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        path.unlink(missing_ok=True)
    return False


def _try_lock(handle: int, waiting: Callable[[str], None], is_first: Callable[[], bool]) -> bool:
    may_have_it = is_first()
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting(os.pread(handle, 4096, 0).decode("utf-8", "replace").strip())
        return False
    if not may_have_it:  # whoever came before takes it at its next look; the file names a job that has ended
        fcntl.flock(handle, fcntl.LOCK_UN)
    return may_have_it


def submit(job_dir: Path, environ: Mapping[str, str], lock: int | None) -> Job:
    """Start ``job.sh`` in a session of its own; the job holds the machine's lock as long as any process of it lives."""
    log = job_dir / LOG
    try:
        with log.open("ab") as out:
            process = subprocess.Popen(
                ["bash", "job.sh"],
                cwd=job_dir,
                env={**environ, "GPUBENCH_STOP_AT_EOF": "the front end is gone"},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=() if lock is None else (lock,),
            )
    except OSError as error:
        raise SchedulerError(f"can't start {job_dir / 'job.sh'}: {error}") from None
    _remember(job_dir, process.pid, None)
    return Job(process, job_dir)


def state(job_dir: Path) -> JobState:
    """How the script that was last started from ``job_dir`` stands; with its last line where it failed."""
    record = _read_record(job_dir)
    if record is None:
        return JobState("unsubmitted")
    job_id, code = str(record["pid"]), record["code"]
    if code is not None:
        return JobState("ended", "FAILED" if code else "COMPLETED", _last_line(job_dir) if code else "", code, job_id)
    if elsewhere := _elsewhere(record["machine"], _machine()):
        return declared(record["declared_ended"], JobState(*elsewhere, job_id=job_id))
    if not _alive(record):
        return JobState("ended", "KILLED", job_id=job_id)
    orphaned = not _is(**record["front"])
    return JobState("running", "RUNNING", "its front end is dead" if orphaned else "", None, job_id, orphaned=orphaned)


def _remember(job_dir: Path, pid: int, code: int | None) -> None:
    front = {"pid": os.getpid(), "started": _start_time(os.getpid())}
    machine = _machine()
    _write(job_dir, {"pid": pid, "started": _start_time(pid), "code": code, "front": front, "machine": machine})


def _write(job_dir: Path, record: Mapping[str, Any]) -> None:
    path, text = job_dir / STATE_FILE, json.dumps(record)
    try:
        write_atomically(path, text)  # a concurrent reader gets the old or the new file
    except MissingToolError:
        with writing(path), path.open("r+", encoding="utf-8") as file:  # a full disk has the old one's place
            file.write(text)
            file.truncate()


def _read_record(job_dir: Path) -> dict[str, Any] | None:
    """What was remembered; None where nothing was. Raises DataError: it can't be read."""
    path = job_dir / STATE_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {
            **{name: record[name] for name in ("pid", "started", "code")},
            **{name: dict(record[name]) for name in ("front", "machine")},
            "declared_ended": record.get("declared_ended"),
        }
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} can't be read", then=f"if no such job runs, remove {path}") from None


def declare_ended(job_dir: Path) -> None:
    record = _read_record(job_dir)
    if record is not None:
        _write(job_dir, {**record, "declared_ended": declaration()})


def _machine() -> dict[str, str]:
    """What tells this machine from others, its starts from each other, and containers on it, which see own processes.

    https://www.freedesktop.org/software/systemd/man/latest/machine-id.html, which asks for the hash; random(4),
    boot_id; pid_namespaces(7).
    """
    path = Path("/etc/machine-id")
    identity = path.read_bytes().strip() if path.is_file() else b""
    return {
        "host": socket.gethostname(),
        "id": hashlib.sha256(b"gpubench " + identity).hexdigest()[:16] if identity else "",
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        "processes": str(Path("/proc/self/ns/pid").readlink()),
    }


def _elsewhere(origin: Mapping[str, str], machine: Mapping[str, str]) -> tuple[Phase, str, str] | None:
    """Phase, word and reason of a job started on ``origin`` that isn't seen on ``machine``; None where it is seen."""
    if (origin["boot"], origin["processes"]) == (machine["boot"], machine["processes"]):
        return None
    if (
        origin["boot"] != machine["boot"]
        and origin["id"]
        and (origin["host"], origin["id"]) == (machine["host"], machine["id"])
    ):
        return "ended", "KILLED", "this machine has been started anew since"
    what = "another container of it" if origin["boot"] == machine["boot"] else machine["host"]
    return "unknown", "", f"it was started on {origin['host']}, and this is {what}: ask there"


def _last_line(job_dir: Path) -> str:
    try:
        lines = (job_dir / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def cancel(job_dir: Path) -> None:
    """End the script that was last started from ``job_dir``, and come back when it has ended."""
    record = _read_record(job_dir)
    now = state(job_dir)
    if record is None or now.over:
        return
    if now.doubt:
        raise SchedulerError(f"job {job_dir.name}: {now.doubt}")
    signalled_pid = 0

    def alive() -> bool:
        nonlocal signalled_pid
        if not state(job_dir).alive:
            return False
        # The script hands the signal on. One that is killed, even after we sent it, leaves its supervisors to us.
        whom = record["pid"] if _is(record["pid"], record["started"]) else -record["pid"]
        if whom != signalled_pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(whom, signal.SIGTERM)
            signalled_pid = whom
        return True

    _await_end(alive, record["pid"])


def _alive(record: Mapping[str, Any]) -> bool:
    """Whether the script or a supervisor of it lives: a script that was killed leaves them behind for a moment."""
    pid, started = record["pid"], record["started"]
    if _is(pid, started):
        return True
    # While a process group has members, the kernel gives its number to no other process.
    fields = _stat(Path(f"/proc/{pid}/stat"))
    given_again = bool(fields) and fields[19].decode("ascii") != started
    return bool(started) and not given_again and _has_members(pid)


def _has_members(group: int) -> bool:
    """Whether a process of the group lives; zombies don't count."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        fields = _stat(entry)
        if fields and fields[0] != b"Z" and fields[2] == b"%d" % group:
            return True
    return False


def _is(pid: int, started: str) -> bool:
    """Whether the process of that time lives."""
    return bool(started) and _start_time(pid) == started


def _start_time(pid: int) -> str:
    """When the process started, in ticks since boot: with the id it names one process; empty where it has ended."""
    fields = _stat(Path(f"/proc/{pid}/stat"))
    return fields[19].decode("ascii") if fields and fields[0] != b"Z" else ""


def _stat(path: Path) -> list[bytes]:
    """The fields behind the name, which may hold any byte: state, parent, group, ...; proc(5), from field 3 on."""
    try:
        return path.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
