"""``docs/gallery.md`` shows what the commands print on the Draco history, and its charts are theirs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.archive import draco_archive
from tests.conftest import ROOT, Run

PAGE = ROOT / "docs" / "gallery.md"
BLOCK = re.compile(r"```console\n\$ gpubench (?P<words>[^\n]*)\n(?P<said>.*?)```", re.DOTALL)
TEXTS = re.compile(r"<text[^>]*>([^<]+)</text>")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The file under the name that it has at home."""
    return Path(shutil.copy(draco_archive(), tmp_path / "multi-node-merge.csv"))


@pytest.mark.usefixtures("archive")
def test_the_gallery_shows_what_the_commands_print(gpubench: Run, tmp_path: Path) -> None:
    def again(block: re.Match[str]) -> str:
        done = gpubench(*shlex.split(block["words"]))
        return f"```console\n$ gpubench {block['words']}\n{done.stdout}{done.stderr}```"

    page = PAGE.read_text()
    now = BLOCK.sub(again, page)
    assert now.count("```console") == 4
    if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
        PAGE.write_text(now)
    else:
        assert page == now, "docs/gallery.md is out of date: GPUBENCH_UPDATE_GOLDEN=1 rewrites it"


@pytest.mark.system
def test_its_charts_are_what_report_draws(gpubench: Run, archive: Path, tmp_path: Path) -> None:
    gpubench("results", "import", "draco-csv", archive.name, "--out", "draco", "--site", "draco")
    done = gpubench("report", "draco", "--svg", "gallery")
    assert done.returncode == 0, done.stderr
    kept, page = sorted((ROOT / "docs" / "gallery").iterdir()), PAGE.read_text()
    assert [f"gallery/{one.name}" in page for one in kept] == [True, True]
    for one in kept:
        drawn = tmp_path / "gallery" / one.name
        if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
            shutil.copy(drawn, one)
        # Fonts, and with them widths, differ between machines; words and what is drawn don't.
        assert TEXTS.findall(drawn.read_text()) == TEXTS.findall(one.read_text())
        assert drawn.read_text().count("<path") == one.read_text().count("<path")


def test_no_copy_of_the_archive_is_kept() -> None:
    assert not [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".csv", ".parquet")]
