"""``history`` and ``changes`` on campaigns: one a week, of which a later half ran on another kernel, and slower."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from campaign_builder import START, Writer, begin, make_plan, variant

from tests.conftest import Run

SUITE = (("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 3, 0.41),)
WEEKS, STEP = 10, 5


@pytest.fixture
def weekly(tmp_path: Path) -> Path:
    for week in range(WEEKS):
        at = START + dt.timedelta(weeks=week)
        plan = make_plan((variant("1.17.0"), variant("1.19.0")), blocks=2, suite=SUITE, campaign=f"week-{week}")
        directory = tmp_path / "outputs" / f"week-{week}"
        campaign = begin(directory, plan.model_copy(update={"created_at": at.isoformat()}))
        writer = Writer(campaign, lambda *_, week=week: 1.3 if week >= STEP else 1.0, clock=at)
        for job, block, run in campaign.rows():
            if (week, block.block, run.variant) == (2, 1, "1.19.0"):
                writer.write(job, block, run, status="failed", reason="worker 1 died")
                continue
            path = writer.write(job, block, run) / "provenance.json"
            if week >= STEP:
                path.write_text(path.read_text().replace("6.1.0", "6.9.9"))
    return tmp_path / "outputs"


def test_every_campaign_says_what_it_has_of_what_was_planned_and_why_the_rest_is_missing(
    gpubench: Run, weekly: Path
) -> None:
    done = gpubench("history", weekly)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("campaign week-") == WEEKS
    assert "1 x failed: worker 1 died" in done.stdout
    cells = json.loads(gpubench("history", weekly / "week-2", "--json").stdout)["sources"][0]["cells"]
    assert [(one["variant"], one["there"], one["of"]) for one in cells] == [("1.17.0", 2, 2), ("1.19.0", 1, 2)]


def test_a_change_is_annotated_with_the_provenance_that_changed_there(gpubench: Run, weekly: Path) -> None:
    done = gpubench("changes", weekly, "--json")
    assert done.returncode == 0, done.stderr
    series = json.loads(done.stdout)["series"]
    assert len(series) == 2
    for one in series:
        (change,) = one["changes"]
        assert change["at"] == str((START + dt.timedelta(weeks=STEP)).date())
        assert any("6.9.9" in field for field in change["fields"])
        assert change["others"] == 1
