"""What a budget holds: blocks in whole sets, and the repetitions of a first pass."""

import hypothesis
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpubench.errors import PlanRefusedError
from gpubench.plan.budget import (
    LEAST_BLOCKS,
    LEAST_REPS,
    MOST_TO_FILL,
    SPARE_S,
    FirstPass,
    PilotWorkload,
    blocks_that_fit,
    fewest_blocks,
    fill_budget,
)
from gpubench.plan.request import History
from tests.conftest import examples
from tests.plan.requests_by_hand import plan

# One block of two variants takes 2 x (4 + 2 x 2) = 16 s in tests/plan/requests_by_hand.py.


@pytest.mark.parametrize(("variants", "least"), [(1, 5), (2, 6), (3, 6), (4, 8), (5, 5), (6, 6), (7, 7)])
def test_the_least_is_a_multiple_of_the_variants_and_five_or_more(variants: int, least: int) -> None:
    assert fewest_blocks(variants) == least


@given(st.integers(1, 9), st.integers(1, 60), st.floats(0.01, 1e4), st.floats(1, 1e6))
@example(1, 5, 0.2, 1.0)  # they fill the budget exactly
def test_blocks_are_whole_sets_that_fit_and_no_more_than_asked(
    variants: int, asked: int, block_s: float, budget_s: float
) -> None:
    least = min(fewest_blocks(variants), asked)
    try:
        blocks = blocks_that_fit(
            requested=asked, variants=variants, all_places_block_s=block_s, budget_s=budget_s, firm=True
        )
    except PlanRefusedError:
        assert budget_s < least * block_s
        return
    assert blocks % variants == 0 or blocks == asked
    assert min(LEAST_BLOCKS, asked) <= blocks <= asked
    assert blocks * block_s <= budget_s
    one_set_more = blocks + variants
    assert one_set_more > asked or one_set_more * block_s > budget_s * (1 - 1e-9)


def test_a_firm_budget_that_is_too_small_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(PlanRefusedError) as caught:
        plan(budget_s=60.0, budget_firm=True)
    assert str(caught.value) == (
        "a budget of 1m00s holds 3 blocks of about 16s; 2 variants need 6 (6 x 16s = 1m36s); "
        "give --budget 2m, --blocks 5 without a budget, fewer variants, fewer counts in --nodes or --workers, or a "
        "smaller --suite"
    )
    assert caught.value.exit_code == 6
    with pytest.raises(PlanRefusedError, match=r"holds 3 blocks of about 16s; --blocks asks for 4 \(4 x 16s = 1m04s\)"):
        plan(budget_s=60.0, budget_firm=True, blocks=4)
    assert sum(len(job.blocks) for job in plan(budget_s=60.0, budget_firm=True, blocks=3).jobs) == 3


def test_the_budget_that_a_refusal_names_is_enough() -> None:
    assert sum(len(job.blocks) for job in plan(budget_s=120.0, budget_firm=True).jobs) == 6


def test_a_habit_of_the_site_that_is_too_small_gives_way_to_the_fewest_useful_blocks() -> None:
    made = plan(budget_s=60.0, budget_firm=False, blocks=20)
    assert sum(len(job.blocks) for job in made.jobs) == 6
    assert "6 blocks instead of 20: the fewest that a budget plans, longer than the site's of 1m00s" in made.notes
    made = plan(budget_s=240.0, budget_firm=False, blocks=20)
    assert "14 blocks instead of 20: the most within the budget, in steps of 2, one for each variant" in made.notes


def test_a_budget_counts_every_node_count() -> None:
    one = plan(budget_s=16.0 * 12, budget_firm=True, blocks=40)
    two = plan(budget_s=16.0 * 12, budget_firm=True, blocks=40, nodes=[1, 2])
    assert [sum(len(job.blocks) for job in made.jobs) for made in (one, two)] == [12, 12]
    assert {job.nodes: len(job.blocks) for job in two.jobs} == {1: 6, 2: 6}
    assert one.time.total_s == two.time.total_s == 192.0


TRIED = st.builds(PilotWorkload, cost_s=st.floats(0.02, 3.0), scatter=st.floats(0.0, 0.6), marked=st.integers(1, 3))


def first(fixed_s: float = 7.0, **tried: PilotWorkload) -> FirstPass:
    return FirstPass("first", 20.0, fixed_s, tried)


def blocks_planned(pass_: FirstPass, reps: dict[str, int], budget_s: float, blocks: int, variants: int) -> int:
    return blocks_that_fit(
        requested=blocks,
        variants=variants,
        all_places_block_s=pass_.run_s(reps) * variants,
        budget_s=budget_s,
        firm=False,
    )


@hypothesis.settings(max_examples=examples(200), deadline=None)
@hypothesis.given(
    tried=st.dictionaries(st.sampled_from("abcdef"), TRIED, min_size=1),
    fixed_s=st.floats(1, 30),
    budget_s=st.floats(30, 3600),
    blocks=st.integers(5, 20),
    variants=st.integers(2, 4),
)
def test_the_budget_is_not_passed_where_the_least_fits_and_is_nearly_filled(
    tried: dict[str, PilotWorkload], fixed_s: float, budget_s: float, blocks: int, variants: int
) -> None:
    made = FirstPass("first", 20.0, fixed_s, tried)
    held, reps = fill_budget(made, budget_s=budget_s, blocks=blocks, variants=variants)
    assert min(reps.values()) >= LEAST_REPS
    count = blocks_planned(made, reps, budget_s, held, variants)
    assert held == count
    taken = made.run_s(reps) * variants * count
    fewest = made.run_s(dict.fromkeys(tried, LEAST_REPS)) + SPARE_S
    if fewest * variants * fewest_blocks(variants) <= budget_s:
        assert taken <= budget_s + 1e-6
    if min(reps.values()) > LEAST_REPS and all(each < tried[name].most for name, each in reps.items()):
        one_more_each = made.run_s({name: each + 1 for name, each in reps.items()}) + SPARE_S
        assert one_more_each * variants * count >= budget_s - 1e-6


def test_no_workload_is_planned_to_take_more_than_a_third_of_its_time_limit() -> None:
    tried = {"a": PilotWorkload(0.5, 0.1, 2, limit_s=300), "b": PilotWorkload(0.5, 0.1, 2, limit_s=30)}
    _, reps = fill_budget(first(7.0, **tried), budget_s=4 * 3600, blocks=6, variants=2)
    assert reps == {"a": 198, "b": 18}
    lone = {"a": PilotWorkload(60.0, 0.1, 2, limit_s=60)}
    assert fill_budget(first(7.0, **lone), budget_s=4 * 3600, blocks=6, variants=2) == (6, {"a": LEAST_REPS})


def test_time_goes_where_it_narrows_most() -> None:
    even = PilotWorkload(0.5, 0.1, 1)
    _, reps = fill_budget(first(a=even, b=PilotWorkload(0.5, 0.2, 1)), budget_s=400, blocks=6, variants=2)
    assert reps["b"] == pytest.approx(2 * reps["a"], abs=2)
    _, cheap = fill_budget(first(a=even, b=PilotWorkload(0.125, 0.1, 1)), budget_s=400, blocks=6, variants=2)
    assert cheap["b"] == pytest.approx(2 * cheap["a"], abs=2)  # half the time, a quarter of the cost


def test_fewer_blocks_rather_than_runs_that_mostly_start_and_end() -> None:
    made = first(a=PilotWorkload(0.5, 0.1, 1))
    assert fill_budget(made, budget_s=2000, blocks=8, variants=2)[0] == 8
    assert fill_budget(made, budget_s=200, blocks=8, variants=2)[0] == 6


def test_as_many_blocks_as_leave_half_of_each_run_to_its_repetitions() -> None:
    made = first(3.5, a=PilotWorkload(1.0, 0.1, 2), b=PilotWorkload(0.5, 0.1, 2))
    held, reps = fill_budget(made, budget_s=286, blocks=MOST_TO_FILL, variants=2)
    assert (held, made.run_s(dict.fromkeys(reps, 0))) == (10, 6.5)
    assert made.run_s(reps) > 2 * 6.5 > 286 / 24
    long = fill_budget(made, budget_s=4 * 3600, blocks=MOST_TO_FILL, variants=3)
    assert long[0] == MOST_TO_FILL // 3 * 3
    assert min(long[1].values()) > 50


def test_the_plan_says_where_its_repetitions_come_from() -> None:
    history = History("first", 21.5, 1, source="what the first pass took")
    made = plan(history=history, tried=first(), repetitions=["repetitions by a first pass of 20s: tasks 7"])
    assert made.first_pass == "first"
    assert made.notes[0] == "repetitions by a first pass of 20s: tasks 7"
    assert (made.time.run_s, made.time.source) == (21.5, "what the first pass took")
