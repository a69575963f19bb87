"""Blocks that are added to a campaign: in place of broken ones, and as a user asks for more."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.model.plan import Plan, PlanAddition, PlannedBlock
from gpubench.plan.additions import Repair, plan_more, plan_repair
from gpubench.plan.block_design import campaign_orders
from tests.plan.requests_by_hand import plan, site

PLAN = plan("a=1 b=2 c=3", blocks=6, nodes=[1, 2])
NOW = "2026-11-20T13:00:00+00:00"
NOTHING = Repair({}, None)


def blocks(of: Plan) -> dict[int, PlannedBlock]:
    return {block.block: block for job in of.jobs for block in job.blocks}


def status(of: Plan, default: str = "ok", **by_block: str) -> dict[str, str]:
    """``default`` for every run; ``b3="ok lost ok"`` for the runs of block 3 in their order."""
    found = {run.run: default for _, _, run in of.runs()}
    for name, words in by_block.items():
        runs = blocks(of)[int(name[1:])].runs
        found.update(dict(zip((run.run for run in runs), words.split(), strict=True)))
    return found


def grown(before: Plan, addition: PlanAddition | None) -> Plan:
    assert addition is not None
    return before.model_copy(update={"jobs": [*before.jobs, *addition.jobs]})


def test_a_run_that_nobody_knows_is_missing() -> None:
    assert plan_repair(PLAN, {}, NOW).again == {"j001-n1": [1, 2, 3, 4, 5, 6], "j002-n2": [7, 8, 9, 10, 11, 12]}


@pytest.mark.parametrize("missing", ["lost", "skipped"])
def test_a_broken_block_gets_a_whole_new_one_with_the_same_order(missing: str) -> None:
    repair = plan_repair(PLAN, status(PLAN, b2=f"ok failed {missing}"), NOW)
    assert repair.again == {}
    assert repair.addition is not None
    (job,) = repair.addition.jobs
    (new,) = job.blocks
    old = blocks(PLAN)[2]
    assert (job.job, job.nodes, job.limit_s) == ("j003-n1", 1, 420.0)
    assert (new.block, new.replaces) == (13, 2)
    assert [run.variant for run in new.runs] == [run.variant for run in old.runs]
    assert not {run.run for run in new.runs} & set(status(PLAN))
    assert repair.addition.reason == "resume: replaces broken block 2"
    assert repair.addition.created_at == NOW


def test_broken_blocks_of_each_node_count_go_into_a_job_of_their_own() -> None:
    broken = "ok ok lost"
    repair = plan_repair(PLAN, status(PLAN, b1=broken, b3=broken, b9=broken, b12="lost lost lost"), NOW)
    assert repair.again == {"j002-n2": [12]}
    assert repair.addition is not None
    assert repair.addition.reason == "resume: replaces broken block 1, 3, 9"
    assert [(job.job, job.nodes) for job in repair.addition.jobs] == [("j003-n1", 1), ("j004-n2", 2)]
    assert [(block.block, block.replaces) for job in repair.addition.jobs for block in job.blocks] == [
        (13, 1),
        (14, 3),
        (15, 9),
    ]


def test_where_a_job_holds_one_block_each_broken_block_gets_a_job_of_its_own() -> None:
    made = plan(
        "a=1 b=2 c=3", blocks=6, nodes=[2], site=site(scheduler="kubernetes", launcher="indexed-job", runtime="pod")
    )
    assert [len(job.blocks) for job in made.jobs] == [1] * 6
    repair = plan_repair(made, status(made, b2="ok ok lost", b5="lost ok ok"), NOW)
    assert repair.addition is not None
    assert [(job.job, [block.replaces for block in job.blocks]) for job in repair.addition.jobs] == [
        ("j007-n2", [2]),
        ("j008-n2", [5]),
    ]


def test_a_replaced_block_is_not_replaced_twice_but_its_replacement_may_be() -> None:
    whole = grown(PLAN, plan_repair(PLAN, status(PLAN, b2="ok lost ok"), NOW).addition)
    assert plan_repair(whole, status(whole, b2="ok lost ok"), NOW) == NOTHING
    never_ran = plan_repair(whole, status(whole, b2="ok lost ok", b13="lost lost lost"), NOW)
    assert never_ran == Repair({"j003-n1": [13]}, None)
    broken = plan_repair(whole, status(whole, b2="ok lost ok", b13="lost ok ok"), NOW)
    assert broken.addition is not None
    (job,) = broken.addition.jobs
    assert [(block.block, block.replaces) for block in job.blocks] == [(14, 13)]
    assert job.job == "j004-n1"


outcomes = st.lists(st.sampled_from(["ok", "failed", "skipped", "lost"]), min_size=36, max_size=36)


@given(outcomes)
def test_a_repair_leaves_the_plan_alone_is_repeatable_and_covers_every_block(found: list[str]) -> None:
    before = PLAN.dump()
    given_status = dict(zip(status(PLAN), found, strict=True))
    repair = plan_repair(PLAN, given_status, NOW)
    assert PLAN.dump() == before
    assert plan_repair(PLAN, given_status, NOW) == repair
    again = {number for numbers in repair.again.values() for number in numbers}
    replaced = {block.replaces for job in repair.addition.jobs for block in job.blocks} if repair.addition else set()
    for number, block in blocks(PLAN).items():
        ended = [given_status[run.run] in ("ok", "failed") for run in block.runs]
        assert (number in again) == (not any(ended))
        assert (number in replaced) == (any(ended) and not all(ended))
    new = [
        run.run
        for job in (repair.addition.jobs if repair.addition else [])
        for block in job.blocks
        for run in block.runs
    ]
    assert len(set(new) | set(given_status)) == len(new) + len(given_status)


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
    repaired = plan_repair(start, status(start, b1="lost ok"), NOW).addition
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
