"""Alpha spending, its boundaries, and adaptive verdicts."""

import math

import numpy as np
import pytest
import scipy
from campaign_by_hand import blocks_of, comparison, noisy, one

from gpubench.errors import UsageError
from gpubench.stats.decision import T_SHARE, alpha_spent, looks_so_far, nominal_levels, schedule, sequential_p
from gpubench.stats.settings import Looks, VerdictSettings
from gpubench.stats.verdict import judge

ADAPTIVE = VerdictSettings(look=Looks(12))
LOOKS = (5, 6, 8, 10, 12)


@pytest.mark.parametrize(("maximum", "looks"), [(5, (5,)), (6, (5, 6)), (7, (5, 6, 7)), (9, (5, 6, 8, 9)), (12, LOOKS)])
def test_looks_are_after_5_6_then_every_second_block_and_the_maximum(maximum, looks):
    assert schedule(maximum) == looks


def test_spending_is_quadratic_in_the_share_of_blocks():
    assert alpha_spent(0.05, 0.5) == pytest.approx(0.0125)
    assert alpha_spent(0.05, 1.5) == 0.05


def test_boundaries_are_those_of_the_reference():
    two_sided = nominal_levels(LOOKS, 12, 0.0425, 2, False)
    one_sided = nominal_levels(LOOKS, 12, 0.0425, 1, False)
    assert [round(level, 4) for level in two_sided] == [0.0074, 0.0070, 0.0130, 0.0197, 0.0278]
    assert [round(level, 4) for level in one_sided] == [0.0074, 0.0073, 0.0136, 0.0208, 0.0297]


@pytest.mark.parametrize("sides", [1, 2])
def test_boundaries_spend_alpha_on_simulated_brownian_motion(sides):
    steps = np.diff((0, *LOOKS))
    scores = np.cumsum(np.random.default_rng(1).standard_normal((200_000, 5)) * np.sqrt(steps), axis=1)
    z = scores / np.sqrt(LOOKS)
    bounds = scipy.stats.norm.isf(np.array(nominal_levels(LOOKS, 12, 0.05, sides, False)) / sides)
    crossed = np.maximum.accumulate((np.abs(z) if sides == 2 else z) >= bounds, axis=1).mean(axis=0)
    assert crossed == pytest.approx([alpha_spent(0.05, n / 12) for n in LOOKS], abs=4 * math.sqrt(0.05 / 200_000))


def test_a_single_look_at_the_maximum_is_an_ordinary_test():
    assert nominal_levels((12,), 12, 0.05, 2, False) == pytest.approx([0.05])
    p = np.array([[0.03], [0.6]])
    assert sequential_p(p, (12,), 12, 0.05, False) * T_SHARE == pytest.approx([0.03, 0.6], rel=1e-3)


def test_the_last_look_of_a_campaign_that_ends_early_spends_all_that_is_left():
    going_on = nominal_levels((5, 6, 7), 12, 0.05, 2, False)
    ended = nominal_levels((5, 6, 7), 12, 0.05, 2, True)
    assert ended[:2] == going_on[:2]
    assert ended[2] > 4 * going_on[2]
    assert nominal_levels((5,), 12, 0.05, 2, True) == pytest.approx([0.05])


def test_a_sequential_p_crosses_alpha_exactly_where_the_boundary_is_crossed():
    for position, level in enumerate(nominal_levels(LOOKS, 12, 0.05 * T_SHARE, 2, False)):
        p = np.ones((2, 5))
        p[:, position] = level * 0.999, level * 1.001
        below, above = sequential_p(p, LOOKS, 12, 0.05, False)
        assert below <= 0.05 < above


def test_a_sequential_p_never_rises_with_further_looks():
    p = np.random.default_rng(2).uniform(0, 0.3, (50, 5))
    by_look = [sequential_p(p[:, : k + 1], LOOKS[: k + 1], 12, 0.05, False) for k in range(5)]
    assert (np.diff(by_look, axis=0) <= 1e-12).all()


def test_before_the_first_look_an_adaptive_cell_is_inconclusive():
    verdict = one(noisy(4, effect=0.2, sd=0.001), ADAPTIVE)
    assert (verdict.verdict, verdict.p) == ("inconclusive", None)
    assert verdict.reason.startswith("no look yet: ")


def test_a_count_of_blocks_that_is_no_look_tests_nothing_new():
    # The last pair of seven is far off; only the looks at 5 and 6 count until the campaign ends.
    differences = [*noisy(6, effect=0.03, sd=0.03), 0.5]
    assert one(differences, ADAPTIVE).p == one(differences[:6], ADAPTIVE).p
    assert looks_so_far(7, 12) == (5, 6, 7)
    ended = one(differences, VerdictSettings(look=Looks(12, ended=True)))
    assert ended.p != one(differences, ADAPTIVE).p


def test_a_huge_effect_is_decided_at_the_first_look():
    assert one(noisy(5, effect=0.2, sd=0.01), ADAPTIVE).verdict == "regression"
    assert one(noisy(5, sd=0.002), ADAPTIVE).verdict == "equivalent"


def test_an_adaptive_interval_is_wider_than_the_fixed_one():
    differences = noisy(8, sd=0.02)
    level = nominal_levels((5, 6, 8), 12, 0.05 * T_SHARE, 2, False)[-1]
    half_width = scipy.stats.t.isf(level / 2, 7) * 0.02 / math.sqrt(8)
    assert math.log1p(one(differences, ADAPTIVE).high) == pytest.approx(half_width)
    assert one(differences, ADAPTIVE).high > one(differences).high


@pytest.mark.parametrize("count", [5, 6, 8])
def test_an_adaptive_cell_is_equivalent_where_both_one_sided_tests_cross_their_boundary(count):
    # Quiet first pairs would cross at an earlier look, so the earlier pairs are the loud ones.
    level = nominal_levels(LOOKS, 12, 0.05 * T_SHARE, 1, False)[LOOKS.index(count)]
    reach = scipy.stats.t.isf(level, count - 1) * 0.008 / math.sqrt(count)
    differences = noisy(count, sd=0.008)
    differences = differences[np.argsort(-np.abs(differences))]
    inside, outside = math.log(1.03) - reach - 1e-6, math.log(1.03) - reach + 1e-6
    assert one(differences + inside, ADAPTIVE).verdict == "equivalent"
    assert one(differences + outside, ADAPTIVE).verdict != "equivalent"


def test_pairs_beyond_the_declared_maximum_are_not_used():
    differences = [*noisy(12, effect=0.02), 0.5, 0.5]
    assert one(differences, ADAPTIVE).effect == pytest.approx(math.expm1(0.02))
    assert one(differences, ADAPTIVE).blocks == 12
    assert one(differences, ADAPTIVE).samples == 12 * 6


def test_a_frozen_cell_uses_only_the_blocks_it_was_decided_on():
    differences = [*noisy(6, effect=0.06, sd=0.005), -0.5, -0.5]
    frozen = judge([comparison(blocks_of(differences), frozen_at=6)], ADAPTIVE)[0]
    assert (frozen.blocks, frozen.verdict) == (6, "regression")


def test_the_end_of_a_campaign_spends_nothing_on_a_frozen_cell():
    # Decided as equivalent at the look after 5 blocks, with p between that look's level and the whole alpha.
    runs = blocks_of(noisy(5, effect=0.01, sd=0.008))
    frozen = judge([comparison(runs, frozen_at=5)], VerdictSettings(look=Looks(12, ended=True)))[0]
    assert frozen.verdict == "equivalent"
    assert frozen.p == one(runs, ADAPTIVE).p > one(runs, VerdictSettings(look=Looks(12, ended=True))).p


def test_a_cell_once_decided_stays_decided_when_others_go_on():
    decided = comparison(blocks_of(noisy(5, sd=0.001)), workload="decided", frozen_at=5)
    for count in (5, 6, 8, 10, 12):
        other = comparison(blocks_of(noisy(count, effect=0.02, sd=0.03)), workload="open")
        assert judge([decided, other], ADAPTIVE)[0].verdict == "equivalent"


def test_a_single_look_pays_for_t_with_fifteen_percent_of_alpha():
    differences = noisy(5, effect=0.02, sd=0.02)
    ended = one(differences, VerdictSettings(look=Looks(12, ended=True)))
    assert ended.p == pytest.approx(one(differences).p / 0.85, rel=1e-3)


def test_an_adaptive_campaign_asks_for_no_more_blocks_than_its_maximum():
    differences = noisy(8, effect=0.025, sd=0.05)
    assert one(differences).more_blocks > 4
    assert one(differences, ADAPTIVE).more_blocks == 4
    assert one(differences, VerdictSettings(look=Looks(12, ended=True))).more_blocks > 4


def test_an_adaptive_maximum_below_five_is_refused():
    with pytest.raises(UsageError):
        Looks(4)
