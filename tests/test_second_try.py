"""Planted flakes and failures: what gets a second try, what is reported, and what is red."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.second_try import KNOWN, REPORT

FLAKE = """
import pathlib, pytest
{mark}
def test_planted():
    tried = pathlib.Path("tried")
    first = not tried.exists()
    tried.touch()
    assert not first, "the first try fails"
"""
BROKEN = """
import pytest
@pytest.mark.system
def test_broken():
    assert False, "every try fails"
"""
SYSTEM = "@pytest.mark.system"


@pytest.fixture
def planted(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A directory of tests beside which our plugin is loaded, as under CI."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p tests.second_try -p no:cacheprovider")
    monkeypatch.setenv(REPORT, str(pytester.path / "flaky-lines"))
    pytester.makeini("[pytest]\nmarkers =\n    system: x\n    integration: x\n")
    return pytester


@pytest.mark.parametrize("mark", ["", f"{SYSTEM}\n@pytest.mark.xdist_group('slurm')"], ids=["unit", "slurm"])
@pytest.mark.parametrize("words", [(), ("--numprocesses", "2", "--dist", "loadgroup")], ids=["alone", "xdist"])
def test_a_planted_flake_is_reported_aloud_and_green(
    planted: pytest.Pytester, words: tuple[str, ...], mark: str
) -> None:
    planted.makepyfile(test_it=FLAKE.format(mark=mark))
    done = planted.runpytest_subprocess(*words)
    assert done.ret == 0
    line = (
        "FLAKY: test_it.py::test_planted: call: AssertionError: the first try fails; "
        "add it to tests/flaky.md and find its cause"
    )
    assert line in [one.strip() for one in done.outlines]
    assert (planted.path / "flaky-lines").read_text() == f"{line}\n"


def test_a_planted_failure_is_red_and_not_called_flaky(planted: pytest.Pytester) -> None:
    planted.makepyfile(test_it=BROKEN)
    done = planted.runpytest_subprocess()
    assert done.ret == 1
    assert done.parseoutcomes() == {"failed": 1, "rerun": 1}
    assert "FLAKY" not in done.stdout.str()
    assert not (planted.path / "flaky-lines").exists()


def test_where_it_is_not_ci_a_test_has_one_try(planted: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "")
    planted.makepyfile(test_it=FLAKE.format(mark=SYSTEM))
    done = planted.runpytest_subprocess()
    assert done.ret == 1
    assert done.parseoutcomes() == {"failed": 1}


def test_every_test_of_the_list_of_flakes_exists() -> None:
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            file, _, name = line.split("`")[1].partition("::")
            assert f"def {name.partition('[')[0]}(" in (ROOT / Path(file)).read_text(encoding="utf-8"), line
