"""A workload that takes too long is ended. In processes of their own: the limit is an alarm of the whole process."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAD = """
import time
from gpubench.node.limit import Limit, WorkloadTimeoutError
"""


def said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, timeout=150, check=False)
    return done.stdout


def test_what_takes_too_long_is_ended_and_says_its_limit() -> None:
    code = """
try:
    with Limit(0.05):
        time.sleep(600)
except WorkloadTimeoutError as error:
    print(error)
"""
    assert said(code) == "no answer within 0.05 s\n"


def test_what_is_swallowed_while_an_object_is_deleted_comes_again() -> None:
    code = """
class Slow:
    def __del__(self):
        end = time.monotonic() + 0.9
        while time.monotonic() < end:
            pass
try:
    with Limit(0.3):
        Slow()
        print("swallowed")
        time.sleep(600)
except WorkloadTimeoutError as error:
    print(error)
"""
    assert said(code) == "swallowed\nno answer within 0.3 s\n"


@pytest.mark.parametrize("ending", ["pass", "raise ValueError"])
def test_a_limit_ends_with_its_block(ending: str) -> None:
    code = f"""
import signal
try:
    with Limit(0.5):
        {ending}
except ValueError:
    pass
assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
time.sleep(0.7)
print("goes on")
"""
    assert said(code) == "goes on\n"


def test_another_thread_ends_the_block_with_its_own_reason() -> None:
    code = """
import threading
try:
    with Limit(600) as limit:
        threading.Timer(0.05, limit.end, [ValueError("enough")]).start()
        time.sleep(600)
except ValueError as error:
    print(error)
"""
    assert said(code) == "enough\n"
