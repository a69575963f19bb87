import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import PlanRefusedError
from gpubench.plan.budget import LEAST_BLOCKS, blocks_that_fit, least_whole_sets
from tests.plan.requests_by_hand import plan

# One block of two variants takes 2 x (4 + 2 x 2) = 16 s in tests/plan/requests_by_hand.py.


@pytest.mark.parametrize(("variants", "least"), [(1, 5), (2, 6), (3, 6), (4, 8), (5, 5), (6, 6), (7, 7)])
def test_the_least_is_a_whole_balanced_set_of_five_blocks_or_more(variants: int, least: int) -> None:
    assert least_whole_sets(variants) == least


@given(st.integers(1, 9), st.integers(1, 60), st.floats(0.01, 1e4), st.floats(1, 1e6))
def test_blocks_are_whole_sets_that_fit_and_no_more_than_asked(
    variants: int, asked: int, block_s: float, budget_s: float
) -> None:
    least = min(least_whole_sets(variants), asked)
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


def test_blocks_that_fill_a_budget_exactly_fit() -> None:
    assert blocks_that_fit(requested=5, variants=1, all_places_block_s=0.2, budget_s=1.0, firm=True) == 5


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
    assert "14 blocks instead of 20: the most whole balanced sets within the budget" in made.notes


def test_a_budget_counts_every_node_count() -> None:
    one = plan(budget_s=16.0 * 12, budget_firm=True, blocks=40)
    two = plan(budget_s=16.0 * 12, budget_firm=True, blocks=40, nodes=[1, 2])
    assert [sum(len(job.blocks) for job in made.jobs) for made in (one, two)] == [12, 12]
    assert {job.nodes: len(job.blocks) for job in two.jobs} == {1: 6, 2: 6}
    assert one.time.total_s == two.time.total_s == 192.0
