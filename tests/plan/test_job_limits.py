"""Time limits of jobs: a queue is asked for what the estimate needs, unless the profile says how long."""

import dataclasses

import pytest

from gpubench.plan.additions import plan_more, plan_repair
from gpubench.plan.request import History
from tests.plan.requests_by_hand import plan, site, workload

NOW = "2026-11-20T13:00:00+00:00"
PILOT = History("earlier", run_s=60.0, runs=8)
ENDS_S = 150.0
"""To start and to stop a run."""


def minutes(seconds: float) -> float:
    return 60.0 * -(-seconds // 60)


def test_a_job_gets_so_many_times_what_it_is_estimated_to_take_in_whole_minutes() -> None:
    timed = plan("base=1 b=2", blocks=6, history=PILOT)
    assert [job.limit_s for job in timed.jobs] == [minutes(3 * 6 * 120 + ENDS_S)] == [2340.0]
    guessed = plan("base=1 b=2", blocks=40)
    assert [job.limit_s for job in guessed.jobs] == [minutes(8 * 40 * guessed.time.block_s + ENDS_S)]


def test_a_job_gets_no_less_than_one_run_may_take_and_no_more_than_the_default() -> None:
    slow = [dataclasses.replace(workload(count=count), timeout_s=1800.0) for count in (5, 6)]
    fast = History("earlier", 1.0, 8)
    assert [job.limit_s for job in plan("base=1 b=2", blocks=1, history=fast, workloads=slow).jobs] == [3780.0]
    assert {job.limit_s for job in plan("base=1 b=2", blocks=40, history=PILOT).jobs} == {14400.0}


def test_a_limit_that_the_profile_names_counts_also_where_it_is_the_default() -> None:
    made = plan("base=1 b=2", blocks=6, history=PILOT, site=site('[limits]\njob = "4h"\n'))
    assert [job.limit_s for job in made.jobs] == [14400.0]
    assert [job.limit_s for job in plan_more(made, 2, NOW).jobs] == [14400.0]


@pytest.mark.parametrize("count", [1, 2, 6])
def test_a_job_of_later_blocks_has_as_long_for_each_as_the_first_jobs(count: int) -> None:
    made = plan("base=1 b=2", blocks=6, history=PILOT)
    expected = [minutes(count * 2340 / 6 + ENDS_S)]
    assert [job.limit_s for job in plan_more(made, count, NOW).jobs] == expected
    lost = {run.run: "lost" if block.block <= count and run.order else "ok" for _, block, run in made.runs()}
    repaired = plan_repair(made, lost, NOW).addition
    assert repaired is not None
    assert [job.limit_s for job in repaired.jobs] == expected
