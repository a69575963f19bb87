"""A real campaign in which a known issue leaves runs out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, records, words, write_suite
from tests.conftest import Run

pytestmark = pytest.mark.integration
REASON = "the candidate's nodes don't meet, $(not even) \"here\""
WHY = f"known issue mine: {REASON} (https://example.org/1)"
RULES = """
[[issue]]
name = "mine"
action = "skip"
reason = '''{reason}'''
url = "https://example.org/1"
[issue.when]
nodes_above = 1
env = {{ UCX_LOG_LEVEL = "w*" }}
[[issue]]
name = "nudge"
action = "env"
reason = "needs a nudge"
url = "https://example.org/2"
env = {{ GPUBENCH_NUDGE = "1" }}
[issue.when]
nodes_above = 1
"""


def test_skipped_runs_are_recorded_with_their_reason_and_the_campaign_is_complete(
    gpubench: Run, tmp_path: Path
) -> None:
    (tmp_path / "rules.toml").write_text(RULES.format(reason=REASON))
    suite = write_suite(tmp_path, reps=1, count=10)
    more = ("--nodes", "1 2", "--blocks", "1", "--set", "known_issues=rules.toml")
    done = gpubench(*words(suite, *more, variants="a=1.22.0 b=1.22.0,UCX_LOG_LEVEL=warn"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"  skipped: b on 2 nodes: {WHY}\n" in done.stdout
    assert "  on 2 nodes nothing can be compared: every candidate is skipped\n" in done.stdout
    assert " = 4 runs (1 of them skipped) of suite " in done.stdout
    assert " 2 comparisons (1 of them skipped), seed " in done.stdout
    assert "runs: 3 ok, 1 skipped\n" in done.stdout
    assert f"no data: skipped, as planned: {WHY}" in done.stdout
    campaign = campaign_in(tmp_path)
    found = {(one["nodes"], one["variant"]): one for one in records(campaign).values()}
    assert {place: (one["status"], one["reason"]) for place, one in found.items() if one["status"] != "ok"} == {
        (2, "b"): ("skipped", WHY)
    }
    assert set(found) == {(1, "a"), (1, "b"), (2, "a"), (2, "b")}
    specs = {path: '"GPUBENCH_NUDGE": "1"' in path.read_text() for path in campaign.glob("jobs/*/specs/*")}
    assert {path.parents[1].name for path, nudged in specs.items() if nudged} == {"j002-n2"}
    assert gpubench("status", campaign).returncode == 0
    again = gpubench("bench", "--campaign", campaign)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "nothing is missing" in again.stdout
    assert gpubench("compare", campaign).returncode == 21
