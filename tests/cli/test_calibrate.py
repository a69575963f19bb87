"""``gpubench calibrate``, really run: A against A, gone on with, slowed, and shown in reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.campaigns import records, write_suite
from tests.conftest import Run

pytestmark = pytest.mark.system


def kept(directory: Path) -> dict[str, dict[str, object]]:
    """What stands in the site's file, by how much the candidate was slowed."""
    plain = json.loads((directory / "state" / "gpubench" / "calibration" / "local.json").read_text())
    return {one["slow"]: one for one in plain["calibrations"]}


@pytest.mark.long
def test_campaigns_are_counted_gone_on_with_and_kept_with_the_site(tmp_path: Path, gpubench: Run) -> None:
    suite = write_suite(tmp_path, reps=2, count=20)
    words = ("--suite", suite, "--ucx", "1.22.0", "--blocks", "1", "--seed", "1", "--set", "layout.workers=1")
    done = gpubench("calibrate", *words, "--campaigns", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    (directory,) = (tmp_path / "outputs").iterdir()
    assert kept(tmp_path)[""]["campaigns"] == 1

    done = gpubench("calibrate", directory, "--campaigns", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "campaign 2 of 2: inconclusive" in done.stdout
    first, second = sorted(path.parent for path in directory.glob("*/plan.json"))
    assert len(records(first)) == len(records(second)) == 2
    found = kept(tmp_path)[""]
    # One block can't decide anything, so nothing can be a false alarm.
    assert (found["campaigns"], found["alarms"], found["equivalent"], found["blocks"]) == (2, 0, 0, 1)
    said = "False alarms: 0 of 2 campaigns (0 %, 95 % interval 0 to 84.2 %)"
    assert said in done.stdout
    assert gpubench("report", first).returncode == 0
    assert said in (first / "report.html").read_text()
    assert said in (first / "report.md").read_text()


def test_a_slowed_candidate_waits_by_what_was_asked_and_nothing_else_differs(tmp_path: Path, gpubench: Run) -> None:
    suite = write_suite(tmp_path, reps=4, count=50)
    done = gpubench(
        *("calibrate", "--suite", suite, "--ucx", "1.22.0", "--blocks", "1", "--set", "layout.workers=1"),
        *("--campaigns", "1", "--slow", "50%"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (campaign,) = (path.parent for path in (tmp_path / "outputs").glob("*/*/plan.json"))
    assert kept(tmp_path)["50%"]["campaigns"] == 1
    for name, record in records(campaign).items():
        lines = [json.loads(line) for line in (campaign / "runs" / name / "samples.jsonl").read_text().splitlines()]
        total = sum(line["wall_s"] for line in lines)
        slowed = record["workloads"][0]["details"].get("slowed_s", 0.0)
        # A wait ends late, by as long as somebody else had the processor.
        assert slowed >= total / 3 * 0.999 if record["variant"] == "b" else slowed == 0
    explained = gpubench("diff", "a", "b", campaign).stdout
    assert "environment.GPUBENCH_SLOW: unset → 50%" in explained
    assert "Differences that the plan didn't ask for: none." in explained
