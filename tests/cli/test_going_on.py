"""A campaign that is gone on with: blocks that are added, and blocks that a budget left no time for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, records, words, write_suite
from tests.conftest import Run

pytestmark = pytest.mark.system

SHORT = ["--set", "estimates.run=300ms", "--set", "estimates.workload=100ms"]
"""Far less than a run takes."""


def test_blocks_are_added_and_judged_with_those_before_them(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench(*words(write_suite(tmp_path, reps=3, count=10), "--blocks", "3"))
    assert done.returncode == 0, done.stderr
    assert "the noise here is not known" in done.stdout.partition("[1/6]")[0]
    campaign = campaign_in(tmp_path)
    before = {name: (campaign / "runs" / name / "run.json").stat().st_mtime_ns for name in records(campaign)}
    more = gpubench("bench", "--campaign", campaign, "--blocks", "+1")
    assert more.returncode == 0, more.stderr
    assert "1 more block after 3" in more.stdout
    assert more.stderr.count("1 block was added after the results had been looked at") == 1
    found = records(campaign)
    assert sorted(record["block"] for record in found.values()) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert {name: (campaign / "runs" / name / "run.json").stat().st_mtime_ns for name in before} == before
    (verdict,) = json.loads((campaign / "verdicts.json").read_text())["cells"]
    assert verdict["blocks"] == 4
    assert "was added after the results had been looked at" in (campaign / "report.html").read_text()
    (row,) = [line for line in more.stdout.splitlines() if line.startswith("tasks | ")]
    assert " → " in row
    assert gpubench("results", "fsck", campaign).returncode == 0


def test_a_budget_is_a_bound_and_what_it_left_no_time_for_can_be_run_later(gpubench: Run, tmp_path: Path) -> None:
    asked = words(write_suite(tmp_path, reps=2, count=10), *SHORT, "--blocks", "6", "--budget", "5s")
    done = gpubench(*asked)
    assert done.returncode == 0, done.stderr
    campaign = campaign_in(tmp_path)
    found = records(campaign).values()
    late = [record for record in found if record["status"] == "skipped"]
    assert late, "blocks take longer than foreseen"
    assert {record["reason"].partition(":")[0] for record in late} == {"no time left in the budget"}
    assert len(late) % 2 == 0, "blocks are begun whole or not at all"
    assert [record["status"] for record in found].count("ok") == 12 - len(late) >= 2
    assert done.stdout.count("and those after it are not begun: no time left in the budget") == 1
    (line,) = [line for line in done.stdout.splitlines() if "not begun, because" in line]
    assert f"gpubench bench --campaign {campaign.relative_to(tmp_path)}   # {len(late) // 2} block" in line
    assert "because the budget left no time: about " in line
    assert gpubench("status", campaign).returncode == 0, "nothing is missing that was asked for"
    later = gpubench("bench", "--campaign", campaign)
    assert later.returncode == 0, later.stderr
    assert [record["status"] for record in records(campaign).values()].count("ok") == 12


@pytest.mark.long
def test_over_budget_begins_every_block(gpubench: Run, tmp_path: Path) -> None:
    asked = words(write_suite(tmp_path, reps=2, count=10), *SHORT, "--blocks", "6", "--budget", "10s", "--over-budget")
    done = gpubench(*asked)
    assert done.returncode == 0, done.stderr
    assert [record["status"] for record in records(campaign_in(tmp_path)).values()] == ["ok"] * 12
    assert "not begun" not in done.stdout
