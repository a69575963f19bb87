"""Two sides without a common block: Welch's t against SciPy's, the words, and how often they are wrong."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
import scipy
from campaign_by_hand import two_origins

from gpubench.stats.settings import VerdictSettings
from gpubench.stats.unpaired import judge_unpaired, welch
from gpubench.stats.verdict import Verdict
from tests.conftest import examples

Logs = list[float]


def judge(*family: tuple[Logs, Logs], refused: str = "") -> list[Verdict]:
    """Of logs of the seconds of A's blocks and of B's, a sample each."""
    comparisons = [two_origins(*([[math.exp(log)] for log in side] for side in both), refused) for both in family]
    return judge_unpaired(comparisons, VerdictSettings())


def side(count: int, spread: float, mean: float = 0.0, seed: object = 1) -> list[float]:
    noise = random.Random(f"{seed}{count}{spread}")
    return [noise.gauss(mean, spread) for _ in range(count)]


@pytest.mark.parametrize(("first", "second"), [((3, 0.01), (3, 0.05)), ((8, 0.02), (4, 0.02)), ((12, 0.3), (5, 0.001))])
def test_it_is_scipys_welch(first: tuple[int, float], second: tuple[int, float]) -> None:
    one, other = side(*first), side(*second, mean=0.05)
    found, known = welch(one, other), scipy.stats.ttest_ind(other, one, equal_var=False)
    assert found is not None
    assert found.p == pytest.approx(known.pvalue, rel=1e-9)
    assert found.freedom == pytest.approx(known.df, rel=1e-9)
    interval = known.confidence_interval(0.9)
    assert found.mean - found.half(0.1) == pytest.approx(interval.low, rel=1e-9)
    assert found.mean + found.half(0.1) == pytest.approx(interval.high, rel=1e-9)


def test_the_words_are_those_of_paired_verdicts() -> None:
    tight = side(6, 0.001)
    family = [(tight, [one + shift for one in side(6, 0.001, seed=2)]) for shift in (0.0, 0.1, -0.1, 0.02)]
    family.append((side(3, 0.2), side(3, 0.2, seed=2)))
    found = judge(*family)
    assert [one.verdict for one in found] == ["equivalent", "regression", "improvement", "equivalent", "inconclusive"]
    assert [one.beyond_margin for one in found] == [False, True, True, False, False]
    assert found[1].effect == pytest.approx(math.expm1(0.1), abs=0.002)
    assert found[1].low is not None
    assert found[1].high is not None
    assert found[1].low < math.expm1(0.1) < found[1].high


def test_equivalent_is_the_ninety_percent_interval_within_the_margin() -> None:
    first, second = side(8, 0.02), side(8, 0.02, seed=2)
    known = scipy.stats.ttest_ind(second, first, equal_var=False)
    reach = (known.confidence_interval(0.9).high - known.confidence_interval(0.9).low) / 2
    apart, delta = float(np.mean(second) - np.mean(first)), math.log(1.03)
    for effect, equivalent in (
        (delta - reach - 1e-6, True),
        (delta - reach + 1e-6, False),
        (-delta + reach + 1e-6, True),
        (-delta + reach - 1e-6, False),
    ):
        (found,) = judge((first, [one - apart + effect for one in second]))
        assert (found.verdict == "equivalent") is equivalent, effect


@pytest.mark.parametrize(("count", "word"), [(0, "no data"), (1, "few blocks"), (2, "few blocks")])
def test_fewer_than_three_blocks_on_a_side_carry_no_verdict_and_keep_their_place(count: int, word: str) -> None:
    clear = (side(6, 0.001), [one + 0.1 for one in side(6, 0.001, seed=2)])
    few, alone = judge((side(8, 0.01), side(count, 0.01)), clear)
    assert (few.verdict, few.reason.partition(":")[0], few.p_holm) == ("inconclusive", word, None)
    assert alone.p_holm == pytest.approx(2 * (alone.p or 0))


@pytest.mark.parametrize("fewer", [3, 4, 5])
def test_below_five_blocks_the_degrees_of_freedom_are_the_smaller_sides_less_one(fewer: int) -> None:
    """Mickey and Brown 1966, Ann. Math. Stat. 37:639; from five on Satterthwaite's."""
    first, second = side(fewer, 0.02), side(12, 0.02, mean=0.05)
    welch_test = scipy.stats.ttest_ind(second, first, equal_var=False)
    freedom = fewer - 1 if fewer < 5 else welch_test.df
    assert freedom != pytest.approx(welch_test.df if fewer < 5 else fewer - 1)
    (verdict,) = judge((first, second))
    assert verdict.p == pytest.approx(2 * scipy.stats.t.sf(abs(welch_test.statistic), freedom), rel=1e-9)


def test_repeated_rows_are_not_repeated_runs() -> None:
    (one,) = judge(([0.0] * 6, [0.2] * 6))
    assert (one.verdict, one.reason.partition(":")[0]) == ("inconclusive", "no variation")


@pytest.mark.property
@pytest.mark.parametrize("counts", [(3, 6), (4, 4), (8, 8)])
def test_false_alarms_stay_within_five_percent_of_families(counts: tuple[int, int]) -> None:
    """Families of four where nothing differs, and sides whose noise differs fourfold."""
    rng = np.random.default_rng(7)
    count, alarms, wrong = examples(60), 0, 0
    for _ in range(count):
        family = [(list(rng.normal(0, 0.04, counts[0])), list(rng.normal(0, 0.01, counts[1]))) for _ in range(4)]
        alarms += any(one.verdict in ("regression", "improvement") for one in judge(*family))
        beyond = [(list(rng.normal(0, 0.01, counts[0])), list(rng.normal(math.log(1.03), 0.003, counts[1])))]
        wrong += judge(*beyond)[0].verdict == "equivalent"
    most = scipy.stats.binom.isf(1e-3, count, 0.05)
    assert alarms <= most
    assert wrong <= most


@pytest.mark.parametrize("seconds", [1.23, 1.37, 1.51, 2.29])
def test_equal_times_vary_by_no_rounding_of_their_means(seconds: float) -> None:
    sides = [[[value] * count for count in range(3, 8)] for value in (seconds, 1.05 * seconds)]
    (found,) = judge_unpaired([two_origins(*sides)], VerdictSettings())
    assert (found.verdict, found.reason.partition(":")[0]) == ("inconclusive", "no variation")


def test_a_refused_cell_keeps_its_place_in_the_family_and_says_why() -> None:
    both = side(6, 0.001), [one + 0.1 for one in side(6, 0.001, seed=2)]
    (refused,) = judge(both, refused="layout: 2 against 4")
    assert (refused.verdict, refused.reason, refused.effect) == ("inconclusive", "layout: 2 against 4", None)


def failing(count: int, shift: float, baseline: int = 0) -> Verdict:
    """Eight tight blocks on each side; in ``count`` of the candidate's, and in so many of the baseline's, it failed."""
    logs = [side(8, 0.001), [one + shift for one in side(8, 0.001, seed=2)]]
    comparison = two_origins(*([[math.exp(log)] for log in of_side] for of_side in logs))
    gone = {("A", number) for number in range(baseline)} | {("B", number) for number in range(count)}
    runs = [
        dataclasses.replace(run, wall_s=(), status="failed") if (run.variant, run.block) in gone else run
        for run in comparison.runs
    ]
    (verdict,) = judge_unpaired([dataclasses.replace(comparison, runs=runs)], VerdictSettings())
    return verdict


def test_a_candidate_that_failed_on_its_side_is_broken_or_at_least_not_good() -> None:
    words = {shift: [failing(count, shift).verdict for count in (0, 1, 2, 8)] for shift in (0.0, -0.1, 0.1)}
    assert words == {
        0.0: ["equivalent", "inconclusive", "broken", "broken"],
        -0.1: ["improvement", "inconclusive", "broken", "broken"],
        0.1: ["regression", "regression", "broken", "broken"],
    }
    assert failing(3, 0.0).reason == "the candidate failed in 3 blocks, and the baseline ran in 8"
    assert failing(1, 0.0).reason.startswith("failed: ")
    # Where the baseline never ran, its failures are the reason.
    assert failing(8, 0.0, baseline=8).reason == (
        "no data: 0 and 0 blocks; the baseline failed in 8; the candidate failed in 8"
    )
    assert failing(0, 0.0, baseline=2).verdict == "equivalent"
