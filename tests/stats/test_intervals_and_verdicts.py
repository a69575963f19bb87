"""The interval beside a verdict agrees with it: it lies beyond zero exactly where Holm showed a difference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from campaign_by_hand import blocks_of, cell, comparison, noisy, two_origins

from gpubench.stats.decision import holm, holm_levels
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.unpaired import judge_unpaired
from gpubench.stats.verdict import Verdict, judge

EFFECTS = (0.0, 0.004, 0.01, 0.015, 0.02, 0.03, -0.02, 0.08)


def family(seed: int, blocks: int, effects: tuple[float, ...] = EFFECTS) -> list[Verdict]:
    rng = np.random.default_rng(seed)
    cells = [cell(effect + 0.02 * rng.standard_normal(blocks), gpu=name) for name, effect in enumerate(effects)]
    return judge(cells, VerdictSettings())


def beyond_zero(one: Verdict) -> bool:
    assert one.low_adjusted is not None
    assert one.high_adjusted is not None
    return one.low_adjusted > 0 or one.high_adjusted < 0


@pytest.mark.parametrize("blocks", [5, 8, 12])
def test_an_adjusted_interval_lies_beyond_zero_exactly_where_holm_rejects(blocks: int) -> None:
    seen = set()
    for seed in range(40):
        for one in family(seed, blocks):
            assert one.p_holm is not None
            assert beyond_zero(one) == (one.p_holm <= 0.05)
            assert one.low_adjusted <= one.low <= one.high <= one.high_adjusted
            if one.verdict == "inconclusive":
                assert one.shown[0] < 0 < one.shown[1]
            own = one.low > 0 or one.high < 0
            assert bool(one.leaning) == (one.verdict == "inconclusive" and own)
            assert one.leaning in one.reason
            assert ("likely" in one.reason) == bool(one.leaning)
            seen.add((one.verdict, one.leaning))
    assert {"regression", "improvement", "equivalent", "inconclusive"} <= {word for word, _ in seen}
    assert {"likely slower, not proven", "likely faster, not proven"} <= {leaning for _, leaning in seen}


def test_each_rejected_cell_has_the_level_of_its_own_step_and_the_others_that_of_the_first_not_rejected() -> None:
    p = np.array([0.04, 0.001, math.nan, 0.012, 0.9])
    rejected = holm(p, np.zeros(5, dtype=np.int64)) <= 0.05
    assert rejected.tolist() == [False, True, False, True, False]
    assert holm_levels(p, rejected, 0.05) == pytest.approx([0.05 / 3, 0.05 / 5, 0.05 / 3, 0.05 / 4, 0.05 / 3])
    assert holm_levels(np.array([0.01, 0.02]), np.array([True, True]), 0.05) == pytest.approx([0.025, 0.05])
    assert holm_levels(np.array([0.01]), np.array([True]), 0.05) == pytest.approx([0.05])


def test_a_comparison_by_itself_has_one_interval() -> None:
    (one,) = judge([cell(noisy(6, effect=0.05))], VerdictSettings())
    assert (one.low_adjusted, one.high_adjusted) == pytest.approx((one.low, one.high))
    assert one.shown == pytest.approx((one.low, one.high))


def within(one: Verdict, margin: float = 0.03) -> bool:
    assert one.low_equivalence is not None
    assert one.high_equivalence is not None
    return one.low_equivalence >= 1 / (1 + margin) - 1 and one.high_equivalence <= margin


def test_an_equivalent_comparison_shows_the_interval_that_lies_within_the_margin() -> None:
    """And no other comparison has one there: a 95 % interval that is wider would seem to contradict the verdict."""
    wider = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        cells = [
            comparison(blocks_of(effect + 0.03 * rng.standard_normal(blocks)), planned=12, gpu=name)
            for name, (effect, blocks) in enumerate(zip(EFFECTS, (5, 6, 8, 10, 12, 8, 9, 6), strict=True))
        ]
        for one in judge(cells, VerdictSettings()):
            assert within(one) == (one.verdict == "equivalent")
            if one.verdict == "equivalent":
                assert one.shown == (one.low_equivalence, one.high_equivalence)
                assert one.low_equivalence <= one.effect <= one.high_equivalence
                wider += one.high > 0.03 or one.low < 1 / 1.03 - 1
    assert wider > 3


def test_what_lies_beyond_the_margin_is_said_of_the_interval_that_is_shown() -> None:
    many = [cell(noisy(6, sd=0.1, seed=n), gpu=n) for n in range(20)]
    alone = judge([cell(noisy(6, effect=0.06, sd=0.02))], VerdictSettings())[0]
    assert (alone.verdict, alone.beyond_margin) == ("regression", True)
    among = judge([cell(noisy(6, effect=0.06, sd=0.02), gpu=99), *many], VerdictSettings())[0]
    assert (among.verdict, among.beyond_margin) == ("regression", False)
    assert among.low > 0.03 > among.low_adjusted > 0


def test_two_sides_without_common_blocks_are_shown_alike() -> None:
    rng, words = np.random.default_rng(3), set()
    for _ in range(40):
        sides = [(rng.normal(0, 0.02, 6), rng.normal(effect, 0.02, 6)) for effect in EFFECTS]
        family = [two_origins(np.exp(first)[:, None], np.exp(second)[:, None]) for first, second in sides]
        for one in judge_unpaired(family, VerdictSettings()):
            beyond = one.low_adjusted > 0 or one.high_adjusted < 0
            assert beyond == (one.p_holm <= 0.05)
            assert ("likely" in one.reason) == (one.verdict == "inconclusive" and (one.low > 0 or one.high < 0))
            inside = one.low_equivalence >= 1 / 1.03 - 1 and one.high_equivalence <= 0.03
            assert inside == (one.verdict == "equivalent")
            words.add(one.verdict)
    assert words == {"regression", "improvement", "equivalent", "inconclusive"}
