from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import termios
import time

import pytest

WATCH = """
import sys, time
from gpubench.node.stop import StopRequest, StoppedError
stop = StopRequest(watch_stdin=sys.argv[1] == "watch")
print("ready", flush=True)
try:
    for look in range(6000):
        stop.check()
        time.sleep(0.01)
except StoppedError as error:
    print(error)
    try:
        stop.check()
    except StoppedError as again:
        print(again)
"""


class Watcher:
    """A process that looks whether it was asked to end; its input is the front end's pipe."""

    def __init__(self, watch: str = "watch") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WATCH, watch], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n"

    def said(self) -> list[str]:
        """What it says until its end. Closes its input."""
        return self.process.communicate(timeout=150)[0].splitlines()


def unread(pipe: int) -> int:
    """Bytes that wait in a pipe."""
    count = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)


def test_the_end_of_the_front_end_ends_the_run() -> None:
    assert Watcher().said() == ["the front end is gone"] * 2


def test_what_the_front_end_writes_is_not_its_end() -> None:
    watcher = Watcher()
    assert watcher.process.stdin
    watcher.process.stdin.write("x" * 10_000 + "\n")
    watcher.process.stdin.flush()
    while unread(watcher.process.stdin.fileno()) and watcher.process.poll() is None:
        time.sleep(0.005)
    watcher.process.send_signal(signal.SIGTERM)
    watcher.process.wait(150)
    assert watcher.said() == ["interrupted by SIGTERM"] * 2


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_signals_are_remembered_by_name(name: str) -> None:
    watcher = Watcher("ignore")
    watcher.process.send_signal(getattr(signal, name))
    watcher.process.wait(150)
    assert watcher.said() == [f"interrupted by {name}"] * 2


def test_the_first_reason_stays() -> None:
    code = (
        "import os, signal\n"
        "from gpubench.node.stop import StopRequest\n"
        "stop = StopRequest(watch_stdin=True)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "print(stop.reason)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=True
    )
    assert done.stdout == "interrupted by SIGINT\n"


def test_a_terminal_or_nothing_as_input_is_no_front_end_unless_it_is_said_to_be_one() -> None:
    code = "from gpubench.node.stop import StopRequest\nStopRequest(watch_stdin=False).check()\nprint('goes on')\n"
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=True
    )
    assert done.stdout == "goes on\n"


def test_a_signal_while_python_ends_does_not_change_the_exit_code() -> None:
    code = (
        "import os, signal\n"
        "from gpubench.node.stop import StopRequest\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, me=os.getpid(), number=signal.SIGTERM):\n"
        "        kill(me, number)\n"  # Python has given the signals back to their default by then
        "late = Late()\n"
        "StopRequest(watch_stdin=False)\n"
        "raise SystemExit(40)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=150, check=False)
    assert done.returncode == 40
