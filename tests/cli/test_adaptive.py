"""An adaptive campaign with real runs: looks, further blocks, its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, words, write_suite
from tests.conftest import Run

pytestmark = [pytest.mark.system, pytest.mark.long]


@pytest.mark.timeout(400)
def test_an_adaptive_campaign_is_looked_at_and_goes_on_until_it_has_ended(gpubench: Run, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, reps=2, count=10)
    done = gpubench(*words(suite, "--adaptive", "--max-blocks", "6", "--margin", "1%"), timeout=350)
    assert done.returncode == 0, done.stderr
    assert "adaptive: looks after 5, 6, then every second block, and at 6 at most" in done.stdout
    campaign = campaign_in(tmp_path)
    additions = [json.loads(path.read_text()) for path in sorted((campaign / "plan.d").iterdir())]
    assert [addition["ended"] for addition in additions] == [False] * (len(additions) - 1) + [True]
    blocks = 5 + sum(len(job["blocks"]) for addition in additions for job in addition["jobs"])
    assert blocks == (5 if len(additions) == 1 else 6), "a block after the first look, unless that decided"
    (verdict,) = json.loads((campaign / "verdicts.json").read_text())["cells"]
    assert verdict["blocks"] == blocks
    assert verdict["p"] is not None
    assert "The campaign was looked at while it ran" in (campaign / "report.html").read_text()
    again = gpubench("bench", "--campaign", campaign)
    assert (again.returncode, "the campaign has had its last look" in again.stdout) == (0, True)
