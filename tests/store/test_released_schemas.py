"""What was written once is read for years: a golden directory for each set of schemas, with results that are known.

``tests/golden/schemas/<number>/`` holds ``schemas.json`` (which numbers it was written with), a finished ``campaign``,
an ``import``, a pack of the campaign, and ``known.json``, what readers must get out of them. CONTRIBUTING says when to
add one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpubench import resources
from gpubench.fsck import check_campaign, check_import
from gpubench.importers.directory import open_imported
from gpubench.merge.table import parquet
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.packs import unpack
from tests.conftest import ROOT
from tests.merging import merge, read_runs

GOLDEN = ROOT / "tests" / "golden" / "schemas"
DIRECTORIES = sorted(GOLDEN.iterdir())
KEPT = ("plan", "plan-addition", "run", "run-spec", "provenance", "manifest", "results", "import", "pack")
"""Files that outlive a gpubench. Others are answers to a question, or live as long as a job, a cluster or an image."""
_NUMBER = re.compile(r'"gpubench/([a-z-]+)/(\d+)"')


def current() -> dict[str, int]:
    """The numbers that this gpubench writes, out of its source."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(resources.PACKAGE.rglob("*.py"))]
    found = [(name, int(number)) for text in texts for name, number in _NUMBER.findall(text)]
    return {kept: max(number for name, number in found if name == kept) for kept in KEPT}


def golden(directory: Path, name: str) -> Any:
    return json.loads((directory / name).read_text(encoding="utf-8"))


def test_every_number_that_is_written_today_has_a_golden_directory() -> None:
    newest = golden(max(DIRECTORIES, key=lambda path: int(path.name)), "schemas.json")
    assert current() == newest, "a schema has another number: add tests/golden/schemas/<next>, see CONTRIBUTING"


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: f"schemas-{path.name}")
def test_a_campaign_of_these_schemas_is_read_with_the_results_that_are_known(directory: Path, tmp_path: Path) -> None:
    known = golden(directory, "known.json")["campaign"]
    places = [directory / "campaign", tmp_path]
    unpack(directory / "campaign.gpubench.zip", tmp_path)
    for place in places:
        campaign = Campaign.open(place)
        frame = merge(read_runs(campaign.runs_dir).runs).frame
        assert account(campaign).counts() == known["runs"]
        sums = frame.group_by("workload", "variant").agg(
            pl.len().alias("samples"), (pl.col("wall_s").sum() * 1e9).round().cast(pl.Int64).alias("ns")
        )
        found = {f"{workload} {variant}": [count, total] for workload, variant, count, total in sums.iter_rows()}
        assert found == known["samples and ns"]
        assert check_campaign(place) == []
    frames = [merge(read_runs(place / "runs").runs).frame for place in places]
    assert parquet(frames[0]) == parquet(frames[1])


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: f"schemas-{path.name}")
def test_an_import_of_these_schemas_is_read_with_the_results_that_are_known(directory: Path) -> None:
    known = golden(directory, "known.json")["import"]
    found = open_imported(directory / "import")
    rows = [[row["variant"], row["workload"], row["rep"], row["wall_s"]] for row in found.table.iter_rows(named=True)]
    assert rows == known["rows"]
    assert found.note["kept"] == len(rows)
    assert check_import(directory / "import") == []
