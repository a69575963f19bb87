"""``history`` and ``changes`` on the Draco archive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.archive import draco_archive
from tests.conftest import Run


@pytest.fixture
def draco(gpubench: Run, tmp_path: Path) -> Path:
    gpubench("import-results", "draco-csv", draco_archive(), "--out", "draco")
    return tmp_path / "draco"


def test_the_slow_down_of_explicit_comms_in_november_2022_is_found_in_all_versions(gpubench: Run, draco: Path) -> None:
    series = json.loads(gpubench("changes", draco, "--json").stdout)["series"]
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


def test_holes_of_the_archive_are_shown_with_what_may_have_been_their_reason(gpubench: Run, draco: Path) -> None:
    said = gpubench("history", draco).stdout
    assert "28 of 28  ############################" in said
    assert "88 x never measured in this cell; no reason recorded, perhaps known issue ucx-8461" in said
    assert "no reason recorded" in said
