"""``--cpu N``: which file's tests used most, processes that they started included."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

BUSY = """
import subprocess, sys
def test_busy():
    subprocess.run([sys.executable, "-c", "sum(range(30_000_000))"], check=True)
"""
IDLE = """
import time
def test_idle():
    time.sleep(0.01)
def test_idle_too():
    pass
"""


@pytest.mark.parametrize("words", [(), ("--numprocesses", "2")], ids=["alone", "xdist"])
def test_the_file_that_used_most_comes_first(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_a=IDLE, test_b=BUSY)
    done = pytester.runpytest_subprocess("-p", "tests.cpu_seconds", "--cpu", "2", *words)
    assert done.ret == 0
    found = re.findall(r"^ +([\d.]+) (test_\w\.py) \((\d) tests\)$", "\n".join(done.outlines), re.MULTILINE)
    assert [(file, count) for _, file, count in found] == [("test_b.py", "1"), ("test_a.py", "2")]
    assert float(found[0][0]) > float(found[1][0])
