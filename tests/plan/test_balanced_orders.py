import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gpubench.plan.block_design import balanced_orders

variants = st.integers(1, 9)
blocks = st.integers(0, 40)
seeds = st.integers(0, 2**32)


@given(variants, blocks, seeds)
def test_every_block_runs_every_variant_once_and_each_stands_first_equally_often_give_or_take_one(
    variants: int, blocks: int, seed: int
) -> None:
    orders = balanced_orders(variants, blocks, random.Random(seed))
    assert [sorted(order) for order in orders] == [list(range(variants))] * blocks
    first = Counter(order[0] for order in orders)
    counts = [first[variant] for variant in range(variants)]
    assert max(counts) - min(counts) <= 1


@given(variants, st.integers(1, 4), seeds)
def test_in_every_whole_set_each_stands_equally_often_in_every_place(variants: int, sets: int, seed: int) -> None:
    of_a_set = variants * (1 + variants % 2)
    orders = balanced_orders(variants, of_a_set * sets, random.Random(seed))
    for start in range(0, len(orders), of_a_set):
        square = orders[start : start + of_a_set]
        for place in range(variants):
            assert set(Counter(order[place] for order in square).values()) == {of_a_set // variants}


@given(variants, blocks, seeds)
def test_two_blocks_have_both_orders_of_every_pair(variants: int, blocks: int, seed: int) -> None:
    """Of five variants in three blocks, most plans had a pair in one order alone, which no verdict can be given for."""
    orders = balanced_orders(variants, blocks, random.Random(seed))
    for at in range(0, blocks - 1, 2):
        assert orders[at + 1] == orders[at][::-1]


def test_other_seeds_give_other_orders_and_either_variant_starts_the_campaign() -> None:
    starts = Counter(balanced_orders(2, 6, random.Random(seed))[0][0] for seed in range(60))
    assert min(starts[0], starts[1]) > 10
    assert len({str(balanced_orders(4, 6, random.Random(seed))) for seed in range(60)}) > 40


def test_the_pairs_of_two_variants_are_shuffled_each_by_itself() -> None:
    orders = balanced_orders(2, 40, random.Random(1))
    assert {(tuple(orders[at]), tuple(orders[at + 1])) for at in range(0, 40, 2)} == {
        ((0, 1), (1, 0)),
        ((1, 0), (0, 1)),
    }
