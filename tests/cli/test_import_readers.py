"""What a campaign can be asked can be asked of an import too, or one line says why not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.in_process import invoked as run


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(ROOT / "tests" / "golden" / "schemas" / "1" / "import", tmp_path / "import"))


def test_the_answer_of_an_import_has_its_verdicts_and_its_cautions_and_writes_nothing(imported: Path) -> None:
    before = sorted(imported.iterdir())
    plain, markdown = run("compare", imported), run("report", imported, "--markdown")
    assert markdown.exit_code == 0
    assert "merge | 1.19 vs 1.17" in plain.stdout
    assert "note: imported" in plain.stdout
    assert "**Import import** (dask-cuda): 6 of 6 rows" in markdown.stdout
    assert sorted(imported.iterdir()) == before


def test_the_charts_of_an_import_are_written_as_files(imported: Path) -> None:
    done = run("report", imported, "--svg", "drawn")
    assert done.exit_code == 0, done.output
    assert "charts: 2 in drawn" in done.stdout
    files = {path.name: path.read_bytes()[:5] for path in Path("drawn").iterdir()}
    assert files == {
        "over-time-merge.svg": b"<svg ",
        "effects.svg": b"<svg ",
    }
    assert "merge: GB/s per worker over dates" in Path("drawn/over-time-merge.svg").read_text()
