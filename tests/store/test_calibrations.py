"""Calibrations of a site: one file, which several commands may write at the same moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.store.calibrations import Calibration, calibration_file, keep_calibration, read_calibrations

KEEP = """
import sys
from gpubench.store.calibrations import Calibration, keep_calibration
first = int(sys.argv[1])
sys.stdin.read(1)
for slow in range(first, first + 20):
    keep_calibration("site", Calibration("1", "now", "quick", "1.17.0", 5, f"{slow}%", 1, 0, 1, 0, [], None, None, "d"))
"""


def test_what_commands_keep_at_once_is_all_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    firsts = range(0, 80, 20)
    writers = [subprocess.Popen([sys.executable, "-c", KEEP, str(one)], stdin=subprocess.PIPE) for one in firsts]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"x")
        writer.stdin.close()  # all begin now
    assert [writer.wait() for writer in writers] == [0] * len(writers)
    assert set(read_calibrations("site")) == {f"{slow}%" for slow in range(80)}


@pytest.mark.parametrize("text", ['{"schema": "gpubench/calibration/9"}', '{"schema"', ""])
def test_a_file_that_this_version_cannot_read_is_kept_beside_the_new_one(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = calibration_file("site")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    for slow in ("", "5%"):
        keep_calibration("site", Calibration("1", "now", "quick", "1.17.0", 5, slow, 1, 0, 1, 0, [], None, None, "d"))
    assert set(read_calibrations("site")) == {"", "5%"}
    assert [one.read_text() for one in path.parent.glob("*.unreadable-*")] == [text]
