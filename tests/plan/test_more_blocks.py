"""Blocks that a user adds to a campaign."""

from __future__ import annotations

from collections import Counter

from gpubench.model.plan import Plan, PlanAddition
from gpubench.plan.additions import plan_more, plan_repair
from gpubench.plan.block_design import campaign_orders
from tests.plan.requests_by_hand import plan

NOW = "2026-11-20T13:00:00+00:00"


def grown(before: Plan, addition: PlanAddition) -> Plan:
    return before.model_copy(update={"jobs": [*before.jobs, *addition.jobs]})


def orders(made: Plan) -> list[list[str]]:
    return [[run.variant for run in block.runs] for job in made.jobs for block in job.blocks]


def test_blocks_that_are_added_twice_are_those_that_a_longer_campaign_would_have_had() -> None:
    start = plan("base=1 b=2 c=3", blocks=6)
    first = plan_more(start, 2, NOW)
    made = grown(start, first)
    made = grown(made, plan_more(made, 1, NOW))
    labels = ["base", "b", "c"]
    assert orders(made) == [[labels[place] for place in order] for order in campaign_orders(7, (1, 2), 3, 9)]
    assert Counter(order[0] for order in orders(made)) == {"base": 3, "b": 3, "c": 3}
    assert [block.block for job in made.jobs for block in job.blocks] == list(range(1, 10))
    ids = [run.run for _, _, run in made.runs()]
    assert len(ids) == len(set(ids)) == 27
    assert first.reason == "2 more blocks after 6"
    assert plan_more(start, 1, NOW).reason == "1 more block after 6"
    assert plan_more(start, 2, NOW) == first, "the same plan gives the same blocks"


def test_a_block_that_replaces_a_broken_one_counts_once() -> None:
    start = plan("base=1 b=2", blocks=6)
    run = start.jobs[0].blocks[0].runs[0].run
    status = {one.run: "ok" for _, _, one in start.runs()} | {run: "lost"}
    repaired = plan_repair(start, status, NOW).addition
    assert repaired is not None
    added = plan_more(grown(start, repaired), 2, NOW)
    assert [len(job.blocks) for job in added.jobs] == [2]
    assert added.reason == "2 more blocks after 6"


def test_every_place_gets_its_blocks_in_as_many_jobs_as_its_time_limit_asks_for() -> None:
    start = plan("base=1 b=2", nodes=[1, 2], blocks=6)
    short = start.site.limits.model_copy(update={"job": start.time.block_s * 3.5})
    start = start.model_copy(update={"site": start.site.model_copy(update={"limits": short})})
    added = plan_more(start, 4, NOW)
    assert [(job.nodes, len(job.blocks)) for job in added.jobs] == [(1, 2), (1, 2), (2, 2), (2, 2)]
    assert len({job.job for job in (*start.jobs, *added.jobs)}) == len(start.jobs) + 4
