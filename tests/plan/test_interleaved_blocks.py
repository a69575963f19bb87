"""Interleaved blocks: where clusters can take turns and fit, who works when and how many times, and why not."""

import itertools
from collections import Counter
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from gpubench.errors import PlanRefusedError
from gpubench.model.plan import Plan, PlannedBlock
from gpubench.model.site import Layout, Node
from gpubench.plan.additions import plan_more, plan_repair
from gpubench.plan.arrangement import resolve_arrangement
from gpubench.plan.block_design import MOST_ROUNDS
from gpubench.plan.request import Request
from tests.conftest import examples
from tests.plan.requests_by_hand import GIB, plan, request, site, workload
from tests.workloads.running import complete

THREE = "a=1.17.0 b=1.18.0 c=1.19.0"


def interleaved(words: str = THREE, more: str = "", **changes: Any) -> Plan:
    layout = Layout(workers=2, one_machine=True, arrangement="interleaved")
    return plan(words, site=site(more, layout=layout), **changes)


def blocks(made: Plan) -> list[PlannedBlock]:
    return [block for job in made.jobs for block in job.blocks]


def check(block: PlannedBlock, reps: dict[str, int]) -> None:
    """What any interleaved block must be."""
    variants = {run.variant for run in block.runs}
    assert [key for key, _ in itertools.groupby(turn.workload for turn in block.turns)] == block.runs[0].workloads
    for params_id in block.runs[0].workloads:
        turns = [turn for turn in block.turns if turn.workload == params_id]
        total: Counter[str] = Counter()
        for turn in turns:
            total[turn.variant] += turn.reps
        assert total == dict.fromkeys(variants, reps[params_id])
        assert all(one.variant != next_one.variant for one, next_one in itertools.pairwise(turns))
        rounds = min(MOST_ROUNDS, reps[params_id])
        assert rounds * (len(variants) - 1) < len(turns) <= rounds * len(variants)


@hypothesis.settings(max_examples=examples(30), deadline=None)
@hypothesis.given(
    reps=st.lists(st.integers(1, 40), min_size=1, max_size=4), count=st.integers(2, 5), seed=st.integers(0, 2**31)
)
def test_every_variant_has_all_repetitions_and_no_switch_leads_to_the_same_variant(
    reps: list[int], count: int, seed: int
) -> None:
    words = " ".join(f"v{number}=1.1{number}.0" for number in range(count))
    workloads = [workload(reps=each, count=5 + at) for at, each in enumerate(reps)]
    made = interleaved(words, workloads=workloads, blocks=2, seed=seed)
    for block in blocks(made):
        check(block, {item.params_id: item.reps for item in workloads})


def test_each_variant_stands_first_in_half_of_the_rounds() -> None:
    made = interleaved("a=1.17.0 b=1.18.0", workloads=[workload(reps=8)], blocks=2)
    for block in blocks(made):
        order = [turn.variant for turn in block.turns for _ in range(turn.reps)]
        rounds = list(zip(order[::2], order[1::2], strict=True))
        assert all(set(one) == {"a", "b"} for one in rounds)
        assert Counter(first for first, _ in rounds) == {"a": 4, "b": 4}


def test_the_same_seed_gives_the_same_turns_and_blocks_differ() -> None:
    first, again, other = (interleaved(seed=seed, blocks=3) for seed in (7, 7, 8))
    assert first.jobs == again.jobs
    assert [block.turns for block in blocks(first)] != [block.turns for block in blocks(other)]
    assert len({str(block.turns) for block in blocks(first)}) > 1


def test_a_sequential_block_has_no_turns_and_its_order_is_the_same() -> None:
    alone, together = plan(THREE), interleaved()
    assert not any(block.turns for block in blocks(alone))
    assert [[run.variant for run in one.runs] for one in blocks(alone)] == [
        [run.variant for run in one.runs] for one in blocks(together)
    ]


def test_clusters_that_live_at_the_same_time_share_the_memory_and_the_plan_says_so() -> None:
    alone, together = plan(THREE), interleaved()
    assert alone.jobs[0].memory_limit // 3 == together.jobs[0].memory_limit
    assert "interleaved: 3 clusters of a block are alive at once; one works, the others are stopped" in together.notes


def test_a_block_that_replaces_or_follows_another_is_interleaved_too() -> None:
    made = interleaved(blocks=2)
    status = {run.run: "ok" for _, _, run in made.runs()} | {made.jobs[0].blocks[0].runs[1].run: "lost"}
    repaired = plan_repair(made, status, "2026-11-20T13:00:00+00:00").addition
    assert repaired is not None
    continued = plan_more(made, 2, "2026-11-20T13:00:00+00:00")
    reps = {item.params_id: item.reps for item in made.workloads}
    for addition in (repaired, continued):
        assert addition.jobs
        for block in (block for job in addition.jobs for block in job.blocks):
            check(block, reps)


def test_where_clusters_cannot_live_side_by_side_the_plan_is_refused() -> None:
    """Every reason stands below, where the arrangement is left to gpubench."""
    layout = Layout(workers=2, one_machine=True, arrangement="interleaved")
    with pytest.raises(PlanRefusedError, match=r"launcher ssh starts one run .*--set layout.arrangement=sequential"):
        plan(THREE, site=site(layout=layout, scheduler="slurm", launcher="ssh"))


def test_what_cannot_be_stopped_is_refused() -> None:
    parsl = workload()
    with pytest.raises(PlanRefusedError, match=r"Parsl's executors live outside .* and can't be stopped; give"):
        interleaved(workloads=[type(parsl)(**{**parsl.__dict__, "backend": "parsl"})])


LARGE = workload("merge", **complete("merge", {"rows_per_worker": 40_000_000}))
"""Held with 60 % of a quarter of the memory, not of an eighth."""


def resolved(wanted: Request) -> Request:
    return resolve_arrangement(wanted, [wanted.describe(item) for item in wanted.workloads])


def settled(
    words: str = "old=1.17.0 new=1.19.0", changes: dict[str, Any] | None = None, **more: Any
) -> tuple[str, str]:
    layout = Layout(workers=2, one_machine=True, arrangement="auto")
    made = resolved(request(words, site=site(**{"layout": layout, **(changes or {})}), **more))
    return made.site.layout.arrangement, made.not_interleaved


def test_what_the_profile_names_stays() -> None:
    named = site(layout=Layout(workers=2, arrangement="sequential"))
    assert resolved(request(site=named)) == request(site=named)


def test_clusters_that_can_take_turns_do_and_one_variant_has_nobody_to_take_turns_with() -> None:
    assert settled() == ("interleaved", "")
    assert settled(variants=request().variants[:1]) == ("sequential", "")


@pytest.mark.parametrize(
    ("changes", "more", "why"),
    [
        ({"runtime": "enroot"}, {}, "runtime enroot isn't known to have several runs on a node at the same time"),
        ({"scheduler": "lsf", "launcher": "jsrun"}, {}, "launcher jsrun starts one run at a time"),
        ({"scheduler": "slurm", "launcher": "srun"}, {}, "launcher srun starts one run at a time"),
        ({"scheduler": "slurm", "launcher": "ssh"}, {}, "launcher ssh starts one run at a time"),
        ({"node": Node(gpus=2)}, {"device": "gpu"}, "the memory pools of several clusters share a GPU"),
        ({}, {"device": "auto"}, "the memory pools of several clusters share a GPU"),
        ({}, {"workloads": [LARGE], "machine_memory": 40 * GIB}, "merge doesn't fit on 1 node x 2 workers"),
    ],
)
def test_elsewhere_one_comes_after_the_other_and_the_reason_is_kept(
    changes: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    arrangement, said = settled(changes=changes, **more)
    assert arrangement == "sequential"
    assert why in said
