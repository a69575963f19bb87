"""The command ends its process without freeing every object first; nothing that belongs to the end is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import plain_environment

COMMAND = """
import atexit, sys, threading
from gpubench.cli import app, main
class Noisy:
    def __del__(self): print("freed")
app.noisy = Noisy()
atexit.register(print, "registered")
if {thread}:
    threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
sys.argv = ["gpubench", *{words}]
main()
"""


def run(*words: str, thread: bool = False) -> subprocess.CompletedProcess[str]:
    program = COMMAND.format(words=list(words), thread=thread)
    return subprocess.run(
        [sys.executable, "-c", program], env=plain_environment(), capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("words", "code", "first"), [(["--version"], 0, "0."), (["nonsense"], 2, "")])
def test_what_is_printed_and_what_is_registered_for_the_end_is_there(words: list[str], code: int, first: str) -> None:
    done = run(*words)
    assert done.returncode == code
    assert done.stdout.startswith(first)
    assert done.stdout.splitlines()[-1] == "registered"
    assert "freed" not in done.stdout
    assert "Traceback" not in done.stderr


def test_another_thread_is_waited_for() -> None:
    done = run("--version", thread=True)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:3] == ["thread", "registered"]
