"""Files of every schema that outlives a command are read with the results that are known.

``tests/golden/schemas/1/`` holds ``schemas.json`` (which numbers it was written with), a finished ``campaign``, an
``import``, and ``known.json``, what readers must get out of them.
"""

import json
import re
from typing import Any

import polars as pl

from gpubench import resources
from gpubench.results.fsck import check
from gpubench.results.importers.directory import open_imported
from gpubench.results.merge.table import sample_table
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1"
KEPT = ("plan", "plan-addition", "run", "run-spec", "provenance", "manifest", "results", "import")
"""Files that outlive a gpubench. Others are answers to a question, or live as long as a job, a cluster or an image."""
_NUMBER = re.compile(r'"gpubench/([a-z-]+)/(\d+)"')


def current() -> dict[str, int]:
    """The numbers that this gpubench writes, out of its source."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(resources.PACKAGE.rglob("*.py"))]
    found = [(name, int(number)) for text in texts for name, number in _NUMBER.findall(text)]
    return {kept: number for kept in KEPT for name, number in found if name == kept}


def golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def test_the_golden_files_have_the_numbers_that_are_written_today() -> None:
    assert current() == golden("schemas.json"), "a schema has another number: see CONTRIBUTING, Schemas"


def test_a_campaign_is_read_with_the_results_that_are_known() -> None:
    known = golden("known.json")["campaign"]
    campaign = Campaign.open(GOLDEN / "campaign")
    accounting = account(campaign)
    frame = sample_table(accounting.outcomes)
    assert accounting.counts() == known["runs"]
    sums = frame.group_by("workload", "variant").agg(
        pl.len().alias("samples"), (pl.col("wall_s").sum() * 1e9).round().cast(pl.Int64).alias("ns")
    )
    found = {f"{workload} {variant}": [count, total] for workload, variant, count, total in sums.iter_rows()}
    assert found == known["samples and ns"]
    assert check(campaign.directory) == []


def test_an_import_is_read_with_the_results_that_are_known() -> None:
    known = golden("known.json")["import"]
    found = open_imported(GOLDEN / "import")
    rows = [[row["variant"], row["workload"], row["rep"], row["wall_s"]] for row in found.table.iter_rows(named=True)]
    assert rows == known["rows"]
    assert found.note["kept"] == len(rows)
    assert check(GOLDEN / "import") == []
