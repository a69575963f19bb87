"""Adaptive campaigns: what a look adds, and when it ends."""

from __future__ import annotations

from collections import Counter

import pytest

from gpubench.model.plan import Comparison, Frozen, Plan, PlanAddition
from gpubench.plan.additions import plan_advance, plan_repair
from gpubench.plan.block_design import campaign_orders
from tests.plan.requests_by_hand import plan

NOW = "2026-11-20T13:00:00+00:00"
START = plan("base=1 b=2 c=3", max_blocks=12, blocks=12)


def grown(before: Plan, addition: PlanAddition) -> Plan:
    return before.model_copy(update={"jobs": [*before.jobs, *addition.jobs]})


def of_workload(made: Plan, name: str) -> list[Comparison]:
    return [one for one in made.comparisons if one.workload == name]


def blocks(made: Plan) -> int:
    return sum(len(job.blocks) for job in made.jobs)


def test_an_adaptive_campaign_starts_with_what_the_first_look_needs_one_block_to_a_job() -> None:
    assert [len(job.blocks) for job in START.jobs] == [1] * 5
    assert START.max_blocks == 12
    assert START.notes[0] == "adaptive: looks after 5, 6, then every second block, and at 12 at most"


def test_looks_come_by_the_schedule_until_the_declared_maximum() -> None:
    made, counts, frozen, reasons = START, [], list[Frozen](), []
    while True:
        addition = plan_advance(made, [], frozen, NOW)
        if addition.ended:
            break
        made = grown(made, addition)
        frozen += addition.frozen
        counts.append(blocks(made))
        reasons.append(addition.reason.partition(",")[0])
    assert counts == [6, 8, 10, 12]
    assert reasons == ["advance: 1 more block", *["advance: 2 more blocks"] * 3]
    assert plan_advance(made, [], [], NOW).jobs == []
    orders = [[run.variant for run in block.runs] for job in made.jobs for block in job.blocks]
    assert orders == [[["base", "b", "c"][place] for place in order] for order in campaign_orders(7, (1, 2), 3, 12)]
    assert Counter(order[0] for order in orders) == {"base": 4, "b": 4, "c": 4}
    ids = [run.run for _, _, run in made.runs()]
    assert len(ids) == len(set(ids)) == 36


def test_a_workload_whose_comparisons_are_all_decided_is_not_run_again() -> None:
    addition = plan_advance(START, of_workload(START, "tasks"), [], NOW)
    (message,) = {one.params_id for one in of_workload(START, "message")}
    assert {
        params for job in addition.jobs for block in job.blocks for run in block.runs for params in run.workloads
    } == {message}
    assert [(one.params_id, one.candidate, one.block) for one in addition.frozen] == [
        (one.params_id, one.candidate, 5) for one in of_workload(START, "tasks")
    ]


def test_a_workload_runs_on_while_one_comparison_needs_it() -> None:
    addition = plan_advance(START, of_workload(START, "tasks")[:1], [], NOW)
    assert {len(run.workloads) for job in addition.jobs for block in job.blocks for run in block.runs} == {2}
    assert len(addition.frozen) == 1


def test_what_was_frozen_by_an_earlier_look_stays_frozen_and_is_not_frozen_again() -> None:
    first = plan_advance(START, of_workload(START, "tasks"), [], NOW)
    second = plan_advance(grown(START, first), START.comparisons, first.frozen, NOW)
    assert second.ended
    assert second.jobs == []
    assert {(one.params_id, one.block) for one in second.frozen} == {
        (one.params_id, 6) for one in of_workload(START, "message")
    }


def test_when_everything_is_decided_the_campaign_ends() -> None:
    addition = plan_advance(START, START.comparisons, [], NOW)
    assert addition.ended
    assert len(addition.frozen) == len(START.comparisons)
    assert PlanAddition.parse(addition.dump(), "001.json") == addition


def test_node_counts_advance_each_by_itself() -> None:
    both = plan("base=1 b=2", nodes=[1, 2], max_blocks=8)
    decided = [one for one in both.comparisons if one.nodes == 1]
    addition = plan_advance(both, decided, [], NOW)
    assert [(job.nodes, len(job.blocks)) for job in addition.jobs] == [(2, 1)]
    assert {one.block for one in addition.frozen} == {5}
    assert [block.block for job in addition.jobs for block in job.blocks] == [11]


@pytest.mark.parametrize("broken", [2, 5])
def test_a_replaced_block_counts_once(broken: int) -> None:
    status = {run.run: "lost" if block.block == broken and run.order == 1 else "ok" for _, block, run in START.runs()}
    repair = plan_repair(START, status, NOW)
    assert repair.addition is not None
    whole = grown(START, repair.addition)
    assert blocks(whole) == 6
    assert blocks(grown(whole, plan_advance(whole, [], [], NOW))) == 7


def test_a_replacement_takes_only_the_workloads_of_the_block_that_it_replaces() -> None:
    look = plan_advance(START, of_workload(START, "tasks"), [], NOW)
    made = grown(START, look)
    (new,) = look.jobs[0].blocks
    status = {run.run: "lost" if run.run == new.runs[0].run else "ok" for _, _, run in made.runs()}
    repair = plan_repair(made, status, NOW)
    assert repair.addition is not None
    (replacement,) = repair.addition.jobs[0].blocks
    assert {tuple(run.workloads) for run in replacement.runs} == {tuple(new.runs[0].workloads)}
