"""Processes that a program of somebody else's starts: found by a mark in their environment, and ended with us.

Guards are processes that clean up behind us, however we end: what such a program has started on other nodes. Jobs and
pods outlive the process that asked for them, on nodes that no supervisor of ours is on; if that process is killed,
nobody else would end them before their own time limit.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable

import gpubench
from gpubench.node.workloads.clock import poll_until

HOME = str(Path(gpubench.__file__).parents[1])
"""What has to be on the path of a process that imports us: ``node.pyz``, or the checkout."""

CLUSTER_VARIABLE = "GPUBENCH_CLUSTER"
"""Marks every process of a run, or of a standing cluster's node."""
CLEANER_VARIABLE = "GPUBENCH_CLEANER"
"""In its place in a process that cleans up behind a run; it ends by itself."""

_BOOT = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
importlib.import_module(sys.argv[2]).main(*sys.argv[3:])
"""
_END_S = 10.0
POLL_S = 0.02


def marked(variable: str, accept: Callable[[str], bool]) -> Dict[int, str]:
    """Processes on this node whose environment holds ``variable`` with a value that ``accept`` takes."""
    processes: Dict[int, str] = {}
    prefix = variable.encode() + b"="
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for item in (entry / "environ").read_bytes().split(b"\0"):
                if item.startswith(prefix):
                    value = item[len(prefix) :].decode("utf-8", "replace")
                    if accept(value):
                        processes[int(entry.name)] = value
    return processes


def await_cleaners(value: str) -> None:
    """Come back when nothing on this node cleans up behind the run of that mark any more, or 10 s are over."""
    poll_until(lambda: not marked(CLEANER_VARIABLE, value.__eq__), time.monotonic() + _END_S, POLL_S)


def end_marked(variable: str, accept: Callable[[str], bool]) -> None:
    """Kill every process on this node whose mark ``accept`` takes, until none is left or 10 s are over."""

    def none_left() -> bool:
        processes = marked(variable, accept)
        for pid in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return not processes

    poll_until(none_left, time.monotonic() + _END_S, POLL_S)


def start(module: str, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start ``main(*words)`` of one of our modules in a process of its own; ``options`` go to ``Popen``."""
    return subprocess.Popen([sys.executable, "-I", "-c", _BOOT, HOME, module, *arguments], **options)


def guard(variable: str, value: str) -> "subprocess.Popen[bytes]":
    """A process that waits for our end, however we end, and then ends whatever carries the mark.

    In a session of its own, so that what is sent to ours doesn't reach it. Close its ``stdin`` to have it act at once.
    """
    return start(__name__, variable, value, stdin=subprocess.PIPE, start_new_session=True)


def main(variable: str, value: str) -> None:
    """The guard: reading ends when the other end of the pipe is closed, which the kernel does for the dead."""
    sys.stdin.buffer.read()
    end_marked(variable, value.__eq__)


OVER = b"over"
LATE_S = 1.0
"""After which those are looked for that were being started when we ended."""


class Guard:
    """Runs ``main(*words)`` of one of our modules, which calls ``clean_up_after``.

    In a session of its own and without ``marks``, those of the run, so that what ends the run doesn't end it;
    ``process_reaper.await_cleaners`` waits for it.
    """

    def __init__(self, module: str, arguments: Iterable[str], marks: Iterable[str]) -> None:
        env = {name: value for name, value in os.environ.items() if name not in {*marks, CLUSTER_VARIABLE}}
        env[CLEANER_VARIABLE] = os.environ.get(CLUSTER_VARIABLE, "")
        self._process = start(module, *arguments, stdin=subprocess.PIPE, start_new_session=True, env=env)

    def over(self) -> None:
        """Nothing is left to clean up."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(OVER)
        self.close()

    def close(self) -> None:
        """Have it clean up, and come back when it has."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def clean_up_after(clean_up: Callable[[], object]) -> None:
    """The guard: reading ends with the other end of the pipe, which the kernel closes for the dead."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # Slurm signals every process of the run's own job
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == OVER:
        return
    clean_up()
    time.sleep(LATE_S)
    clean_up()
