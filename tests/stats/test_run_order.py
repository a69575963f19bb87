"""Order: who ran first, and whether blocks ran side by side."""

import dataclasses

import pytest
from campaign_by_hand import blocks_of, noisy, one


def reordered(runs, **changes):
    return [dataclasses.replace(r, **{name: change(r) for name, change in changes.items()}) for r in runs]


def in_blocks(runs, start):
    """Start times from a function of (block, place in the block)."""
    return reordered(runs, started_at=lambda r: float(start(r.block, r.order)))


@pytest.mark.parametrize("first", ["A", "B"])
def test_one_variant_first_in_every_block_is_inconclusive(first):
    verdict = one(reordered(blocks_of(noisy(8, effect=0.06)), order=lambda r: int(r.variant != first)))
    assert verdict.verdict == "inconclusive"
    assert verdict.reason.startswith(f"order: '{first}' ran first in every block")
    assert (verdict.p, verdict.more_blocks) == (None, None)
    assert verdict.low is not None


def test_start_times_tell_the_order_where_it_is_not_given():
    runs = in_blocks(blocks_of(noisy(8, effect=0.06)), lambda block, place: 100 * block + 10 * place)
    assert one(reordered(runs, order=lambda _: None)).verdict == "regression"
    late = reordered(runs, order=lambda _: None, started_at=lambda r: 100 * r.block + 10.0 * (r.variant == "B"))
    assert one(late).reason.startswith("order: 'A' ran first")


def test_start_times_tell_the_order_where_it_is_given_for_one_variant_only():
    runs = blocks_of(noisy(8, effect=0.06))
    half = reordered(
        runs, order=lambda r: 0 if r.variant == "B" else None, started_at=lambda r: 100.0 * r.block + (r.variant == "B")
    )
    assert one(half).reason.startswith("order: 'A' ran first")


def test_all_of_one_variant_before_the_other_is_inconclusive():
    runs = reordered(blocks_of(noisy(8, effect=0.06)), started_at=lambda r: r.block + 100.0 * (r.variant == "B"))
    assert one(runs).reason.startswith("order: ")


def test_blocks_that_interleave_in_time_are_inconclusive():
    # Both orders occur, but the runs of block 2 lie around those of block 3.
    starts = {(2, 1): 999.0}
    runs = in_blocks(blocks_of(noisy(8)), lambda block, place: starts.get((block, place), 100 * block + 10 * place))
    assert "did not run side by side" in one(runs).reason


def test_blocks_of_different_jobs_may_overlap_in_time():
    runs = in_blocks(blocks_of(noisy(8, sd=0.001)), lambda block, place: block + 100 * place)
    assert one(runs).verdict == "inconclusive"
    assert one(reordered(runs, job=lambda r: f"job{r.block}")).verdict == "equivalent"


def test_a_block_whose_runs_are_from_two_jobs_is_inconclusive():
    runs = reordered(blocks_of(noisy(8)), job=lambda r: f"job{r.block}{r.variant if r.block == 4 else ''}")
    assert one(runs).reason == "order: the runs of block 4 are from different jobs; run a block in one job"


def test_an_unknown_order_is_flagged_and_a_balanced_one_is_not():
    assert "order-unknown" in one(reordered(blocks_of(noisy(8)), order=lambda _: None)).flags
    assert not {"order", "order-unknown", "order-unbalanced"} & set(one(noisy(8)).flags)


@pytest.mark.parametrize("first", ["A", "B"])
def test_a_difference_is_no_effect_of_the_order_where_only_one_block_ran_the_other_way_round(first):
    # The slower variant is second in 15 of 16 blocks, so whoever runs second seems slower.
    differences = noisy(16, effect=0.06 if first == "A" else -0.06, sd=0.004)
    runs = reordered(blocks_of(differences), order=lambda r: (r.variant != first) ^ (r.block == 1))
    assert "order" not in one(runs).flags


def test_blocks_of_two_campaigns_with_jobs_of_one_name_do_not_interrupt_each_other():
    runs = [
        dataclasses.replace(run, run=f"{campaign}-{run.run}", origin=campaign, job="n1")
        for number, campaign in enumerate(("first", "second"))
        for run in in_blocks(
            blocks_of(noisy(8, effect=0.06)), lambda block, place, n=number: 10_000 * n + 100 * block + place
        )
    ]
    assert one(runs).verdict == "regression"


def test_jobs_of_one_name_in_two_campaigns_are_two():
    runs = [
        dataclasses.replace(run, run=f"{campaign}-{run.run}", origin=campaign, job=f"n{run.block}")
        for campaign in ("first", "second")
        for run in blocks_of(noisy(8, effect=0.06))
    ]
    assert not one(runs).one_job
