"""``results import`` and ``compare`` on what it wrote, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpubench.results.importers.draco_csv import NO_MEASUREMENT
from tests.cli.archive import draco_archive
from tests.conftest import Run


@pytest.fixture
def archive() -> Path:
    return draco_archive()


def test_the_draco_history_is_compared_by_version_at_each_number_of_gpus(gpubench: Run, archive: Path) -> None:
    done = gpubench("results", "import", "draco-csv", archive, "--out", "draco")
    assert done.returncode == 0, done.stderr
    assert "653 of 788 rows of 1 file kept in draco: 28 dates, 2022-07-11 to 2023-02-13" in done.stdout
    assert f"refused draco-multi-node-merge.csv:655 and 134 more: {NO_MEASUREMENT}" in done.stderr
    said = gpubench("compare", "draco").stdout
    assert "a 'block' is a date" in said
    assert "one fixed order" in said
    done = gpubench("compare", "draco", "--baseline", "1.12.1", "--json")
    cells = json.loads(done.stdout)["cells"]
    assert done.returncode == 20
    assert {one["workers"] for one in cells} == {8, 16, 32, 64, 128}
    (one,) = (
        cell for cell in cells if (cell["workers"], cell["backend"], cell["candidate"]) == (128, "dask", "1.15.0")
    )
    assert (one["verdict"], one["blocks"]) == ("regression", 6)
    assert one["effect"] == pytest.approx(0.0306, abs=5e-5)


def test_cells_that_are_not_compared_are_named_and_sizes_stand_in_the_order_of_numbers(
    gpubench: Run, tmp_path: Path
) -> None:
    rows = [
        f"{seconds},{version},2026-11-0{day},{size}"
        for size in (128, 16, 1, 256)
        for version, seconds in (("1.9.0", 2.0), ("1.12.0", 2.1))
        for day in range(1, 8)
        if (size, version) != (256, "1.12.0")
    ]
    (tmp_path / "mine.csv").write_text("\n".join(["wall_s,variant,date,n", *rows, ""]))
    columns = "wall_s=wall_s,variant=variant,date=date,params.n=n"
    gpubench("results", "import", "table", "mine.csv", "--columns", columns, "--out", "mine")
    done = gpubench("compare", "mine", "--baseline", "1.9.0")
    sizes = [line.split("|")[0].strip() for line in done.stdout.splitlines() if " vs " in line and "|" in line]
    assert sizes == ["mine n=1", "mine n=16", "mine n=128"]
    assert "note: 1 cell without 1.9.0, or with nothing beside it, is not compared: mine n=256\n" in done.stdout
