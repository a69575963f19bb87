"""Bytecode that test processes share: each makes a part, and pytest takes it as its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bytecode import make_share, rewritten

TEST = "def test_it():\n    number = {}\n    assert number > 0\n"


@pytest.fixture
def root(pytester: pytest.Pytester) -> Path:
    """Five files of tests, one of them with a test that fails, and one file of the program."""
    pytester.makeini("[pytest]")
    (pytester.path / "tests" / "part").mkdir(parents=True)
    (pytester.path / "gpubench").mkdir()
    (pytester.path / "gpubench" / "one.py").touch()
    for number in range(5):
        (pytester.path / "tests" / "part" / f"test_{number}.py").write_text(TEST.format(number))
    return pytester.path


def test_each_process_makes_a_part_and_together_they_make_all_once(root: Path, pytestconfig: pytest.Config) -> None:
    parts = [make_share(pytestconfig, root, number, 2) for number in range(2)]
    assert [len(part) for part in parts] == [3, 2]
    assert {path.name for part in parts for path in part} == {f"test_{number}.py" for number in range(5)}
    assert list(root.glob("gpubench/__pycache__/one.*.pyc"))
    assert [make_share(pytestconfig, root, number, 2) for number in range(2)] == [[], []]


def test_a_file_that_has_changed_is_made_anew(root: Path, pytestconfig: pytest.Config) -> None:
    make_share(pytestconfig, root, 0, 1)
    changed = root / "tests" / "part" / "test_3.py"
    later = rewritten(changed).stat().st_mtime_ns + 10**9
    os.utime(changed, ns=(later, later))
    assert make_share(pytestconfig, root, 0, 1) == [changed]


def test_pytest_takes_what_was_made_and_its_asserts_still_say_what_they_saw(
    root: Path, pytestconfig: pytest.Config, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    made = {path: rewritten(path).stat().st_ino for path in make_share(pytestconfig, root, 0, 1)}
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=4, failed=1)
    done.stdout.fnmatch_lines(["E*assert 0 > 0"])
    assert {path: rewritten(path).stat().st_ino for path in made} == made
