"""The page's charts as files, and in plain characters."""

from __future__ import annotations

import dataclasses
import re
import struct
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import reports

from gpubench.errors import MissingToolError
from gpubench.report.campaign_page import campaign_page
from gpubench.report.pictures import images
from gpubench.report.plots import effect_plot, efficiency_plot
from gpubench.report.writing import write_charts
from gpubench.results.curves import curves
from gpubench.results.judged_campaign import JudgedCampaign
from tests.conftest import run_gpubench


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reports.scaled(tmp_path_factory.mktemp("c") / "scaled", blocks=3).directory


@pytest.fixture(scope="module")
def inputs(campaign: Path) -> JudgedCampaign:
    return reports.collect(reports.Campaign.open(campaign))


def gpubench(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return run_gpubench(words, Path.cwd())


def test_every_chart_is_a_file_with_real_colours_and_none_is_lost(campaign: Path, tmp_path: Path) -> None:
    done = gpubench("report", campaign, "--svg", tmp_path / "new" / "svg", "--terminal")
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "new" / "svg").iterdir())
    kinds = [file.name.partition("-")[0].partition(".")[0] for file in files]
    assert [kinds.count(kind) for kind in ("effects", "samples", "efficiency", "links")] == [1, 15, 2, 3]
    assert f"charts: {len(files)} in " in done.stdout
    for file in files:
        root = ET.fromstring(file.read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in file.read_text()
    heat = (tmp_path / "new" / "svg" / "links-message-1.17.0-4-x-2-workers-3-runs.svg").read_text()
    assert "#104a77" in heat
    # Piped, so without a terminal's width or colours.
    plots, _, steps = done.stdout.partition("charts: ")[2].rpartition("\n\n")
    assert steps.startswith("gpubench bench --campaign ")
    drawn = plots.splitlines()[1:]
    assert len(drawn) > 30
    assert max(map(len, drawn)) <= 80
    assert "\x1b" not in done.stdout


def test_a_png_is_one(inputs: JudgedCampaign) -> None:
    name, content = next(images(campaign_page(inputs).charts(), reports.TEMPLATES, "png"))
    assert name == "effects.png"
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert width > 1000 < height


def test_a_directory_that_cannot_be_is_said_by_its_name(inputs: JudgedCampaign, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingToolError, match=str(tmp_path / "file")):
        write_charts(campaign_page(inputs), tmp_path / "file", "png")


def test_an_effect_beyond_the_picture_is_no_dot_at_its_edge(inputs: JudgedCampaign) -> None:
    far = dataclasses.replace(
        inputs.verdicts[0], effect=9.0, low=None, high=None, low_adjusted=None, high_adjusted=None
    )
    _, _, _, line, *_ = effect_plot([dataclasses.replace(far, verdict="inconclusive"), *inputs.verdicts[1:]], 0.03, 100)
    assert ("> +900.0 %" in line, " o" in line) == (True, False)


def test_a_campaign_without_a_sample_has_no_chart(tmp_path: Path) -> None:
    inputs = reports.collect(reports.empty(tmp_path / "c"))
    assert list(images(campaign_page(inputs).charts(), reports.TEMPLATES, "svg")) == []
    assert list(effect_plot(inputs.verdicts, 0.03, 80)) == []
    assert list(efficiency_plot(curves(inputs.results), 80)) == []


@pytest.mark.parametrize("width", [60, 80, 140])
def test_effects_stand_where_they_belong(inputs: JudgedCampaign, width: int) -> None:
    lines = list(effect_plot(inputs.verdicts, 0.03, width))[1:]
    assert max(map(len, lines)) <= width
    if width < 80:
        return  # names stand on their own lines
    (slower,) = (line for line in lines if re.search(r"merge 4 nodes .*\|.*o", line))
    assert slower.index("|") < slower.rindex(":") < slower.index("o", len("merge 4 nodes"))
    assert re.search(r" \+\d+\.\d % \[[-+]\S+, [+>]\S+\]$", slower)
    assert lines.count("1.19.0 vs 1.17.0") == 1


def test_efficiency_of_every_size(inputs: JudgedCampaign) -> None:
    lines = list(efficiency_plot(curves(inputs.results), 80))
    start = lines.index("merge, 1.17.0")
    sizes = lines[start + 1 : start + 4]
    assert [line.split()[0] for line in sizes] == ["1", "2", "4"]
    places = [line.index("o") for line in sizes]
    assert places == sorted(places, reverse=True)
    assert not any(line.startswith("message") for line in lines)
