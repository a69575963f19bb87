"""The first pass of `bench`: repetitions that fill the budget, said in the plan; and what comes of one that fails."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.campaigns import SIGINT, Front, until

SUITE = """
name = "passed"
first_pass = true
margin = "7%"
reps = 3
[[workload]]
name = "tasks"
params = {count = 20}
"""

SMALL = ["--protocol", "tcp", "--workers", "1", "--seed", "1", "--arrangement", "sequential"]


def words(directory: Path, *more: str) -> list[str]:
    path = directory / "passed.toml"
    path.write_text(SUITE)
    return ["bench", "--suite", str(path), "--variants", "a=1.22.0 b=1.22.0", *SMALL, *more]


def planned(directory: Path) -> dict[str, Any] | None:
    plan = next((directory / "outputs").glob("local-passed-*/plan.json"), None)
    return json.loads(plan.read_text()) if plan else None


@pytest.mark.system
def test_bench_fills_its_budget_by_a_first_pass_and_says_so(tmp_path: Path) -> None:
    front = Front(tmp_path, *words(tmp_path, "--budget", "20m"))
    plan = until(lambda: planned(tmp_path), "the plan")
    until(lambda: "about" in front.output, "the plan's lines")
    front.kill(SIGINT)
    assert front.end() == 130
    (workload,) = plan["workloads"]
    (first,) = (tmp_path / "outputs" / "first-passes").glob("local-passed-*")
    assert plan["first_pass"] == first.name
    assert workload["reps"] > 20  # of twenty tasks, which take at least half of each run
    assert plan["margin"] == 0.07
    assert 0.7 * 1200 < plan["time"]["total_s"] <= 1200
    assert plan["time"]["source"] == "what the first pass took"
    (note,) = (note for note in plan["notes"] if note.startswith("repetitions by a first pass of"))
    assert f"tasks {workload['reps']} x " in note
    assert note in front.output
    assert "first pass of a: 4 repetitions of each workload" in front.output


@pytest.mark.system
def test_a_first_pass_that_fails_leaves_the_suites_own_repetitions(tmp_path: Path) -> None:
    front = Front(tmp_path, *words(tmp_path, "--set", "limits.workload=10ms"))
    plan = until(lambda: planned(tmp_path), "the plan")
    front.kill(SIGINT)
    assert front.end() == 130, front.output
    assert (plan["workloads"][0]["reps"], plan["first_pass"]) == (3, "")
    (note,) = (note for note in plan["notes"] if note.startswith("repetitions as suite passed says: "))
    assert "no answer within 0.01 s" in note


@pytest.mark.system
def test_a_first_pass_that_is_interrupted_leaves_no_campaign(tmp_path: Path) -> None:
    front = Front(tmp_path, *words(tmp_path))
    until(lambda: list((tmp_path / "outputs" / "first-passes").glob("*/runs/*-*")), "the first pass's run")
    front.kill(SIGINT)
    assert front.end() == 130
    assert "interrupted by SIGINT in the first pass; the campaign hadn't begun: start it again" in front.output
    assert not list((tmp_path / "outputs").glob("local-*"))


@pytest.mark.long
def test_blocks_are_appended_while_the_budget_holds_them_and_none_where_the_user_says_how_many(tmp_path: Path) -> None:
    """Interleaved: blocks take less than a first pass of one cluster foresees, or more, and the end tells which."""
    together = ["--arrangement", "interleaved"]
    front = Front(tmp_path, *words(tmp_path, "--budget", "3m", *together))
    assert front.end() in (0, 20, 21), front.output
    plan = planned(tmp_path)
    assert plan is not None
    (campaign,) = (tmp_path / "outputs").glob("local-passed-*")
    added = [json.loads(path.read_text()) for path in sorted((campaign / "plan.d").glob("*.json"))]
    records = [json.loads(path.read_text()) for path in campaign.glob("runs/*/run.json")]
    ends = [dt.datetime.fromisoformat(one["ended_at"]) for one in records]
    taken_s = (max(ends) - min(dt.datetime.fromisoformat(one["started_at"]) for one in records)).total_seconds()
    blocks = len({one["block"] for one in records})
    # What is left holds no balanced set of two blocks, but for the seconds in which jobs begin and end.
    assert plan["budget_s"] - taken_s < 3 * taken_s / blocks
    for one in added:
        assert one["reason"].endswith("for the budget has time left")
        assert one["reason"] in front.output
    (tmp_path / "asked").mkdir()
    asked = Front(tmp_path / "asked", *words(tmp_path / "asked", "--budget", "2m", "--blocks", "6", *together))
    assert asked.end() in (0, 20, 21), asked.output
    assert not list((tmp_path / "asked" / "outputs").glob("local-passed-*/plan.d/*"))
