import fcntl
import signal
import subprocess
import sys
import termios
import time

import pytest

from tests.node.runners import printed

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
    kills = "os.kill(os.getpid(), signal.SIGINT)\nos.kill(os.getpid(), signal.SIGTERM)\n"
    assert printed(f"{WAIT}{kills}print(stop.reason)") == "interrupted by SIGINT\n"


def test_a_terminal_or_nothing_as_input_is_no_front_end_unless_it_is_said_to_be_one() -> None:
    code = "from gpubench.node.stop import StopRequest\nStopRequest(watch_stdin=False).check()\nprint('goes on')\n"
    assert printed(code) == "goes on\n"


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


WAIT = """
import ctypes, os, signal, subprocess, sys
from gpubench.node.stop import StopRequest
stop = StopRequest(watch_stdin=True)
FOR_EVER = 1e6
"""
WOKEN = {
    "the end of a child": """
child = subprocess.Popen(["sleep", "0.1"])
while child.poll() is None:
    stop.wait([], FOR_EVER)
""",
    "the end of a child before": """
child = subprocess.Popen(["true"])
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
stop.wait([], FOR_EVER)
""",
    "the end of a process that another one forked": """
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
shell = subprocess.Popen(["sh", "-c", "sleep 600 >&- & echo $!"], stdout=subprocess.PIPE, text=True)
orphan = int(shell.communicate()[0])
stop.wait([], FOR_EVER)  # the shell's
os.kill(orphan, signal.SIGKILL)
while os.waitpid(orphan, os.WNOHANG) == (0, 0):
    stop.wait([], FOR_EVER)
""",
    "a signal": """
subprocess.Popen(["sh", "-c", "sleep 0.1; kill -TERM $0; exec sleep 600 >&-", str(os.getpid())])
while not stop.asked():
    stop.wait([], FOR_EVER)
assert stop.reason == "interrupted by SIGTERM"
""",
    "a signal before": """
os.kill(os.getpid(), signal.SIGTERM)
stop.wait([], FOR_EVER)
""",
    "a message": """
reads, writes = os.pipe()
os.write(writes, b"x")
stop.wait([reads], FOR_EVER)
""",
    "time": "stop.wait([], 0.01)",
}


@pytest.mark.parametrize("what", WOKEN)
def test_a_supervisor_that_waits_is_woken_by(what: str) -> None:
    with subprocess.Popen([sys.executable, "-c", WAIT + WOKEN[what]], stdin=subprocess.PIPE) as process:
        assert process.wait(150) == 0  # its input stays open until then: there is a front end


def test_a_supervisor_that_waits_is_woken_by_the_end_of_the_front_end_and_only_once() -> None:
    code = "stop.wait([], FOR_EVER)\nprint(stop.reason)\nstop.wait([], 0.01)\nprint('time is over')\n"
    words = [sys.executable, "-c", WAIT + code]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False)
    assert (done.stdout, done.stderr) == ("the front end is gone\ntime is over\n", "")
