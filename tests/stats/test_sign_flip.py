"""Sign flips, enumerated by hand where that is possible."""

import itertools

import numpy as np
import pytest
import scipy
from campaign_by_hand import cell, comparison, noisy, one

from gpubench.stats.paired_blocks import MOST_FLIPS, family_flip_p, flip_p, flip_signs
from gpubench.stats.runs import Floats
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import judge


def patterns(coins: int) -> Floats:
    return np.concatenate(list(flip_signs(coins, 1)))


def test_all_patterns_are_enumerated_while_there_are_at_most_ten_thousand():
    assert patterns(13).shape == (8192, 13)
    assert len(np.unique(patterns(6), axis=0)) == 64
    assert patterns(14).shape == (MOST_FLIPS, 14)
    assert (patterns(40)[0] == 1).all()


def test_drawn_patterns_toss_every_coin_fairly_and_apart_from_the_others() -> None:
    signs = patterns(45)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    chance = 5 / np.sqrt(MOST_FLIPS)
    assert np.abs(signs.mean(axis=0)).max() < chance
    assert np.abs(signs.T @ signs / MOST_FLIPS - np.eye(45)).max() < chance


def test_six_differences_of_one_sign_have_the_smallest_p_of_two_in_sixty_four():
    assert one([0.01, 0.02, 0.03, 0.04, 0.05, 0.06]).p_flip == pytest.approx(2 / 64)


def test_p_flip_agrees_with_brute_force():
    differences = noisy(7, effect=0.01, sd=0.015)
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((1, -1), repeat=7)]
    expected = np.mean(np.array(sums) >= abs(differences.sum()) - 1e-12)
    assert flip_p(differences[None, :], np.array([7]), 1)[0] == pytest.approx(expected)


def test_p_flip_is_not_given_below_six_blocks():
    assert one(noisy(5)).p_flip is None
    assert one(noisy(5)).p_family is None


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_p_family_agrees_with_brute_force_step_down_whatever_a_cell_s_scale(scale):
    cells = np.array([noisy(6, effect=0.02, sd=0.01, seed=1), scale * noisy(6, effect=0.004, sd=0.02, seed=2)])

    def t(rows):
        return np.abs(scipy.stats.ttest_1samp(rows, 0, axis=1).statistic)

    flipped = np.array([t(cells * np.array(signs)) for signs in itertools.product((1, -1), repeat=6)])
    observed = t(cells)
    assert observed[0] > observed[1]
    first = np.mean(flipped.max(axis=1) >= observed[0] - 1e-9)
    second = max(first, np.mean(flipped[:, 1] >= observed[1] - 1e-9))
    mask, group = np.ones((2, 6), dtype=bool), np.tile(np.arange(6), (2, 1))
    assert family_flip_p(cells, mask, group, np.array([True, True]), 1) == pytest.approx([first, second])


def test_the_smallest_p_family_depends_on_blocks_and_not_on_the_count_of_cells():
    family = [cell(noisy(8, effect=0.06, sd=0.005, seed=n), workload=str(n)) for n in range(45)]
    assert {verdict.p_family for verdict in judge(family, VerdictSettings())} == {2 / 256}


def test_cells_of_other_node_counts_are_flipped_apart():
    def p_family(nodes):
        family = [cell(noisy(6, effect=0.06, sd=0.005, seed=n), nodes=nodes[n], workload=str(n)) for n in range(2)]
        return judge(family, VerdictSettings())[0].p_family

    assert p_family((2, 2)) == 2 / 64
    # Each node count has its own six coins: a flip reaches one cell's t in 2 of 64 cases and the other's in 2 more.
    assert 2 / 64 < p_family((2, 4)) <= 4 / 64


def test_a_less_extreme_cell_never_has_the_smaller_p_family():
    # The more extreme cell has six blocks, so 2 of 64 flips reach it; the other one alone would have 2 of 256.
    extreme = cell(noisy(6, effect=0.06, sd=0.0005), nodes=2)
    milder = cell(noisy(8, effect=0.06, sd=0.02), nodes=4)
    first, second = judge([extreme, milder], VerdictSettings())
    drawn = 4 * np.sqrt(2 / 64 / MOST_FLIPS)  # 14 coins: 10,000 patterns are drawn, so a p-value has an error
    assert second.p_family >= first.p_family >= 2 / 64 - drawn


def test_a_cell_without_data_has_no_p_family_and_leaves_the_others_alone():
    family = [cell(noisy(8, effect=0.06, sd=0.005)), comparison([], workload="none")]
    assert [verdict.p_family for verdict in judge(family, VerdictSettings())] == [2 / 256, None]


def test_drawn_flips_are_the_same_for_the_same_seed():
    differences = noisy(20, effect=0.003, sd=0.01)
    assert one(differences, VerdictSettings(seed=5)).p_flip == one(differences, VerdictSettings(seed=5)).p_flip
    assert one(differences, VerdictSettings(seed=5)).p_flip == pytest.approx(one(differences).p, abs=0.05)


def test_a_holm_verdict_that_sign_flips_do_not_support_is_fragile():
    # One coin of six lands the other way: t is far from 0, but 4 of 64 flips reach the sum.
    fragile = one([0.05, 0.06, 0.055, 0.05, 0.06, -0.001])
    assert fragile.verdict == "regression"
    assert fragile.p_flip == pytest.approx(4 / 64)
    assert "fragile" in fragile.flags
    assert "fragile" not in one(noisy(8, effect=0.06, sd=0.005)).flags


def test_a_plan_with_a_negative_seed_can_be_judged():
    settings = VerdictSettings(seed=-5)
    assert one(noisy(20, effect=0.05), settings).p_flip == one(noisy(20, effect=0.05), VerdictSettings(seed=5)).p_flip
