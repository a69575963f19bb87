"""``trend`` and ``report`` on the Draco archive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpubench.results.importers.directory import Given, import_files
from gpubench.results.importers.formats import FORMATS
from tests.cli.archive import draco_archive
from tests.conftest import Run


@pytest.fixture
def draco(tmp_path: Path) -> Path:
    import_files("draco-csv", FORMATS["draco-csv"], [draco_archive()], tmp_path / "draco", Given())
    return tmp_path / "draco"


def test_changes_and_unusual_days_of_the_archive_are_found_in_all_versions(gpubench: Run, draco: Path) -> None:
    series = json.loads(gpubench("trend", draco, "--json").stdout)["series"]
    november = {
        (one["workers"], one["variant"])
        for one in series
        for change in one["changes"]
        if one["backend"] == "explicit-comms" and change["at"] == "2022-11-07" and 0.08 < change["effect"] < 0.17
    }
    assert {(workers, "1.12.1") for workers in (8, 16, 32, 64, 128)} <= november
    assert {variant for _, variant in november} == {"1.12.1", "1.13.1", "1.14.0"}
    dask = [change["at"] for one in series for change in one["changes"] if one["backend"] == "dask"]
    assert dask
    assert "2022-11-07" not in dask
    # Three dates on which every version took a third longer: too few for a test, and plain to see.
    september = {
        one["variant"]
        for one in series
        if (one["backend"], one["workers"]) == ("dask", 8)
        and {"2022-09-12", "2022-09-20", "2022-09-26"} <= {day["date"] for day in one["unusual"]}
    }
    assert september == {"1.12.1", "1.13.1", "1.14.0"}


def test_scaling_and_report_read_an_import(gpubench: Run, draco: Path) -> None:
    said = gpubench("report", draco, "--only", "scaling").stdout
    assert "merge dask, 1.12.1 (weak: the work grows with the workers)" in said
    assert "  128      5.155 s   1.85" in said
    done = gpubench("report", draco)
    assert done.returncode == 0, done.stderr
    page = (draco / "report.html").read_text()
    assert "draco: 653 of 788 rows" in page
    assert "<h1>Of 36 comparisons with 1.12.1: 3 slower: 1.15.0 in merge dask 128 workers in all +3.1" in page
    assert "merge dask 128 workers in all | 1.15.0 vs 1.12.1 | 5.146 s → 5.304 s | +3.1 % [" in done.stdout
    assert page.count('<div class="chart" id="chart-over-time-') == 2
    assert "Rows that were refused" in page
    assert "135 × a reference that was typed in by hand" in page
    names = ("http://www.w3.org/", "https://github.com/openucx")  # of a namespace, which nothing fetches, and of links
    main = page.partition("<main>")[2].partition("</main>")[0]
    assert "http" not in main.replace(names[0], "").replace(names[1], "")
