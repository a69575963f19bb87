"""The page's charts as files."""

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import reports
from campaign_builder import QUICK

from gpubench.errors import MissingToolError
from gpubench.report.campaign_page import campaign_page
from gpubench.report.writing import write_charts
from gpubench.results.judged_campaign import JudgedCampaign
from tests.conftest import run_gpubench


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reports.scaled(tmp_path_factory.mktemp("c") / "scaled", blocks=2, suite=QUICK[2:4]).directory


@pytest.fixture(scope="module")
def inputs(campaign: Path) -> JudgedCampaign:
    return reports.collect(reports.Campaign.open(campaign))


def gpubench(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return run_gpubench(words, Path.cwd())


def test_every_chart_is_a_file_with_real_colours_and_none_is_lost(campaign: Path, tmp_path: Path) -> None:
    done = gpubench("report", campaign, "--svg", tmp_path / "new" / "svg")
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "new" / "svg").iterdir())
    kinds = [file.name.partition("-")[0].partition(".")[0] for file in files]
    assert [kinds.count(kind) for kind in ("effects", "samples", "efficiency")] == [1, 6, 2]
    assert f"charts: {len(files)} in " in done.stdout
    for file in files:
        root = ET.fromstring(file.read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in file.read_text()


def test_a_directory_that_cannot_be_is_said_by_its_name(inputs: JudgedCampaign, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingToolError, match=str(tmp_path / "file")):
        write_charts(campaign_page(inputs), tmp_path / "file")
