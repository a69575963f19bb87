"""The first pass of `bench`: repetitions that fill the budget, said in the plan; and what comes of one that fails."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpubench.campaign import first_pass, lifecycle
from gpubench.errors import InterruptedByUserError
from gpubench.store.campaign import Campaign
from tests.cli.campaigns import SIGINT, Front, until
from tests.conftest import Run
from tests.store.campaign_builder import Writer, begin

SUITE = """
name = "passed"
first_pass = true
margin = "7%"
reps = 3
[[workload]]
name = "tasks"
params = {count = 20}
"""

SMALL = ["--protocol", "tcp", "--workers", "1", "--seed", "1", "--set", "layout.arrangement=sequential"]


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
    assert workload["reps"] > 3  # those of the suite; how many more depends on how busy the machine is
    assert plan["margin"] == 0.07
    assert 0.7 * 1200 < plan["time"]["total_s"] <= 1200
    assert plan["time"]["source"] == "what the first pass took"
    (note,) = (note for note in plan["notes"] if note.startswith("repetitions by a first pass of"))
    assert f"tasks {workload['reps']} x " in note
    assert note in front.output
    assert "first pass of a: 4 repetitions of each workload" in front.output
    (finds,) = (note for note in plan["notes"] if "find differences of about" in note)
    assert re.search(r"about [0-9.e+]+ % in tasks, or more, with 90 % power", finds)
    assert finds in front.output
    assert "the noise here is not known" not in front.output


@pytest.mark.system
def test_a_first_pass_that_is_interrupted_leaves_no_campaign(tmp_path: Path) -> None:
    front = Front(tmp_path, *words(tmp_path))
    until(lambda: list((tmp_path / "outputs" / "first-passes").glob("*/runs/*-*")), "the first pass's run")
    front.kill(SIGINT)
    assert front.end() == 130
    assert "interrupted by SIGINT in the first pass; the campaign hadn't begun: start it again" in front.output
    assert not list((tmp_path / "outputs").glob("local-*"))


@pytest.mark.integration
def test_a_first_pass_that_is_no_measure_leaves_the_suites_own_repetitions(
    gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_arguments: Any) -> None:
        raise InterruptedByUserError("enough")

    monkeypatch.setattr(first_pass, "run_jobs", lambda *_arguments, **_options: None)
    monkeypatch.setattr(lifecycle, "run_blocks", stop)
    done = gpubench(*words(tmp_path))
    assert done.returncode == 130, done.stderr
    assert "repetitions are those of suite passed: the first pass ended" in done.stdout


@pytest.mark.integration
def test_where_every_workload_fails_in_the_first_pass_nothing_else_runs(
    gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: a mistake in an own ``check``, told on line 6 of a plan, whose 24 runs then failed in the same way."""

    def fail(campaign: Campaign, *_arguments: Any, **_options: Any) -> None:
        failed = {item.params_id: "TypeError: no Scalar" for item in campaign.plan.workloads}
        Writer(campaign).write(*next(campaign.rows()), status="failed", reason="1 workload failed", failed=failed)

    monkeypatch.setattr(first_pass, "run_jobs", fail)
    done = gpubench(*words(tmp_path))
    assert done.returncode == 4, done.stdout + done.stderr
    why = r"gpubench: tasks failed in the first pass of .*: TypeError: no Scalar; gpubench logs \S+ shows more; nothing"
    assert re.search(why, done.stderr)
    assert not list((tmp_path / "outputs").glob("local-*"))


def test_a_first_pass_says_once_for_whom_it_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="gpubench")
    with first_pass.say_who_is_waited_for(begin(tmp_path / "c")) as observer:
        for _ in range(3):
            observer.waiting("gpubench, process 12")
    assert caplog.messages == ["the first pass waits for this machine; it is held by gpubench, process 12"]
