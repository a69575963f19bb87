"""A campaign that is gone on with: blocks that are added, and blocks that a budget left no time for."""

import json
from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, records, words, write_suite
from tests.conftest import Run

pytestmark = pytest.mark.system


def test_blocks_are_added_and_judged_with_those_before_them(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench(*words(write_suite(tmp_path, reps=3, count=10), "--blocks", "3"), code=0)
    assert "the noise here is not known" in done.stdout.partition("[1/6]")[0]
    campaign = campaign_in(tmp_path)
    before = {name: (campaign / "runs" / name / "run.json").stat().st_mtime_ns for name in records(campaign)}
    more = gpubench("bench", "--campaign", campaign, "--blocks", "+1", code=0)
    assert "1 more block after 3" in more.stdout
    assert more.stdout.count("note: 1 block was added after the results had been looked at") == 1
    found = records(campaign)
    assert sorted(record["block"] for record in found.values()) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert {name: (campaign / "runs" / name / "run.json").stat().st_mtime_ns for name in before} == before
    (verdict,) = json.loads((campaign / "verdicts.json").read_text())["cells"]
    assert verdict["blocks"] == 4
    assert "was added after the results had been looked at" in (campaign / "report.html").read_text()
    (row,) = [line for line in more.stdout.splitlines() if line.startswith("tasks | ")]
    assert " → " in row
    assert gpubench("results", "fsck", campaign).returncode == 0
