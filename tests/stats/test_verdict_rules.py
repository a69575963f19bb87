"""One test per rule of DESIGN's *Verdicts*."""

import math

import numpy as np
import pytest
import scipy
from campaign_by_hand import WOBBLE, blocks_of, cell, comparison, noisy, one, run, without

from gpubench.errors import DataError, UsageError
from gpubench.stats.settings import FailOn, VerdictSettings
from gpubench.stats.verdict import exit_code, judge


def test_effect_interval_and_p_are_those_of_a_t_test_on_block_differences():
    differences = noisy(8, effect=0.02, sd=0.013)
    verdict, oracle = one(differences), scipy.stats.ttest_1samp(differences, 0)
    interval = oracle.confidence_interval(0.95)
    assert verdict.effect == pytest.approx(math.expm1(np.mean(differences)))
    assert (verdict.low, verdict.high) == pytest.approx((math.expm1(interval.low), math.expm1(interval.high)))
    assert verdict.p == pytest.approx(oracle.pvalue)
    assert verdict.p_holm == pytest.approx(oracle.pvalue)


def test_the_number_of_a_run_is_the_log_of_its_arithmetic_mean():
    # A straggler of 3 s among 1, 1, 1: the mean is 1.5, the median 1.
    runs = [
        run(block, variant, times, order=(block + (variant == "B")) % 2)
        for block in range(6)
        for variant, times in (("A", (1.0, 1.0, 1.0, 1.0)), ("B", (1.0, 1.0, 1.0 + block / 1e6, 3.0)))
    ]
    verdict = one(runs)
    assert verdict.effect == pytest.approx(0.5, abs=1e-5)
    assert verdict.median_effect == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("effect", "word", "beyond"),
    [
        (0.06, "regression", True),
        (0.03, "regression", False),
        (-0.03, "improvement", False),
        (-0.06, "improvement", True),
    ],
)
def test_a_clear_difference_that_may_be_within_the_margin_is_not_beyond_it(effect, word, beyond):
    verdict = one(noisy(8, effect=effect, sd=0.01))
    assert (verdict.verdict, verdict.beyond_margin) == (word, beyond)


def test_equivalent_is_the_ninety_percent_interval_within_the_margin():
    # sd / √8 times the 95 % quantile of t with 7 degrees of freedom decides where the 90 % interval ends.
    reach = scipy.stats.t.ppf(0.95, 7) * 0.02 / math.sqrt(8)
    delta = math.log(1.03)
    assert one(noisy(8, effect=delta - reach - 1e-6, sd=0.02)).verdict == "equivalent"
    assert one(noisy(8, effect=delta - reach + 1e-6, sd=0.02)).verdict != "equivalent"
    assert one(noisy(8, effect=-delta + reach + 1e-6, sd=0.02)).verdict == "equivalent"
    assert one(noisy(8, effect=-delta + reach - 1e-6, sd=0.02)).verdict != "equivalent"


def test_a_significant_difference_well_within_the_margin_is_equivalent():
    verdict = one(noisy(8, effect=0.01, sd=0.002))
    assert verdict.p < 0.001
    assert verdict.verdict == "equivalent"


def test_a_wide_interval_is_inconclusive_and_says_how_many_blocks_are_needed():
    verdict = one(noisy(8, effect=0.02, sd=0.04))
    assert verdict.verdict == "inconclusive"
    assert verdict.reason.startswith("wide: ")
    assert 10 < verdict.more_blocks < 80


def test_holm_counts_every_planned_comparison_even_without_data():
    slow = cell(noisy(8, effect=0.04, sd=0.035))
    alone = judge([slow], VerdictSettings())[0]
    among = judge([slow, *[comparison([], workload=f"w{n}") for n in range(9)]], VerdictSettings())
    assert alone.verdict == "regression"
    assert among[0].verdict == "inconclusive"
    assert among[0].p_holm == pytest.approx(10 * alone.p)
    assert among[1].verdict == "inconclusive"
    assert among[1].reason.startswith("no data: ")
    assert (among[1].effect, among[1].p, among[1].p_holm, among[1].more_blocks) == (None, None, None, 5)


def test_a_candidate_failing_in_two_blocks_is_broken_also_without_any_pair():
    verdict = one(without(blocks_of(noisy(8, sd=0.001)), (2, "B"), (5, "B")))
    assert (verdict.verdict, "(2, 5)" in verdict.reason, exit_code([verdict])) == ("broken", True, 20)
    assert one(without(blocks_of([0.0, 0.01]), (1, "B"), (2, "B"))).verdict == "broken"


@pytest.mark.parametrize(("effect", "word"), [(0.0, "inconclusive"), (-0.06, "inconclusive"), (0.06, "regression")])
def test_a_candidate_failing_in_one_block_is_never_equivalent_or_improved(effect, word):
    verdict = one(without(blocks_of(noisy(8, effect=effect, sd=0.003)), (3, "B")))
    assert verdict.verdict == word
    assert verdict.blocks == 7
    if word == "inconclusive":
        assert verdict.reason.startswith("failed: the candidate failed in block 3")
        assert verdict.more_blocks is None


def test_failures_of_the_baseline_do_not_break_the_candidate():
    runs = without(blocks_of(noisy(8, sd=0.001)), (1, "A"), (2, "A"), (2, "B"))
    assert one(runs).verdict == "equivalent"


@pytest.mark.parametrize("status", ["lost", "skipped"])
def test_lost_and_skipped_runs_are_no_failures_but_lost_ones_are_flagged(status):
    verdict = one(without(blocks_of(noisy(8, sd=0.001)), (1, "B"), (2, "B"), status=status))
    assert (verdict.verdict, "lost" in verdict.flags) == ("equivalent", status == "lost")


def test_one_block_gives_an_effect_and_nothing_else():
    verdict = one([0.05])
    assert verdict.effect == pytest.approx(math.expm1(0.05))
    assert (verdict.low, verdict.high, verdict.p, verdict.verdict) == (None, None, None, "inconclusive")
    assert verdict.reason == (
        "few blocks: 1 block; a verdict needs at least 3 with repetitions, and 5 or more are advised"
    )
    assert verdict.more_blocks == 4


def test_two_blocks_give_an_interval_but_never_a_verdict():
    verdict = one([0.2, 0.6])
    interval = scipy.stats.ttest_1samp([0.2, 0.6], 0).confidence_interval(0.95)
    assert (math.log1p(verdict.low), math.log1p(verdict.high)) == pytest.approx((interval.low, interval.high))
    assert (verdict.p, verdict.verdict) == (None, "inconclusive")


def test_below_five_blocks_the_standard_error_is_at_least_the_within_run_one():
    # Three blocks that agree to 0.01 % although samples scatter by 10 %: √(6 runs · var/(3·mean²)) / 3 blocks.
    wobble = np.array([0.9, 1.0, 1.1])
    verdict = one(blocks_of([0.0, 0.0001, 0.0002], wobble=wobble))
    floor = math.sqrt(6 * wobble.var(ddof=1) / 3) / 3
    assert math.log1p(verdict.high) - 0.0001 == pytest.approx(scipy.stats.t.ppf(0.975, 2) * floor)
    assert verdict.verdict == "inconclusive"


def test_from_five_blocks_the_within_run_floor_is_not_used():
    verdict = one(blocks_of([0.0, 0.0001, 0.0002, 0.0001, 0.0], wobble=(0.9, 1.0, 1.1)))
    assert verdict.verdict == "equivalent"
    assert verdict.high < 0.001


@pytest.mark.parametrize(
    ("differences", "wobble", "said"),
    [
        (noisy(4, sd=0.002), WOBBLE, ""),
        (noisy(5, sd=0.001), (1.0,), ""),
        (noisy(3, sd=0.001), (1.0,), "one sample: "),
        (noisy(4, sd=0.001), (1.0,), "one sample: "),
        (noisy(3, effect=0.06, sd=0.001), (1.0, 1.0, 1.0), "one sample: "),  # written down several times
        ([0.05] * 3, WOBBLE, "no variation: "),
        ([0.05] * 8, WOBBLE, "no variation: "),
    ],
)
def test_below_five_blocks_a_verdict_needs_several_samples_of_each_run_and_always_a_variation(
    differences, wobble, said
):
    verdict = one(blocks_of(differences, wobble=wobble))
    assert (verdict.verdict, verdict.p is None) == (("inconclusive", True) if said else ("equivalent", False))
    assert verdict.reason.startswith(said)
    if said == "no variation: ":
        assert (verdict.low, verdict.more_blocks) == (None, None)


def test_several_blocks_in_one_job_are_marked_as_of_these_nodes():
    assert one(blocks_of(noisy(8), job="j1")).one_job
    assert "on these nodes" in one(blocks_of(noisy(8, effect=0.06), job="j1")).reason
    assert one([*blocks_of(noisy(8), job="j1")[:8], *blocks_of(noisy(8), job="j2")[8:]]).one_job
    assert not one(noisy(8)).one_job


def test_stragglers_are_counted_per_side_with_the_share_that_cannot_be_excluded():
    runs = blocks_of(noisy(5), wobble=(1.0, 1.0, 1.01, 1.0))
    runs = [run(r.block, r.variant, (*r.wall_s, 1.6), order=r.order) if r.variant == "B" else r for r in runs]
    verdict = one(runs)
    assert (verdict.stragglers_baseline, verdict.stragglers_candidate, verdict.samples) == (0, 5, 45)
    assert verdict.straggler_limit == pytest.approx(3 / 20)
    assert verdict.straggler_note == "stragglers 0 | 5; rarer than 15 % can't be excluded"
    assert one([]).straggler_note == ""


@pytest.mark.parametrize(
    ("effects", "code"), [((0.0, -0.06), 0), ((0.0, 0.06), 20), ((0.0, None), 21), ((0.06, None), 20), ((), 21)]
)
def test_exit_codes(effects, code):
    family = [cell([] if effect is None else noisy(8, effect=effect, sd=0.005)) for effect in effects]
    verdicts = judge(family, VerdictSettings())
    assert exit_code(verdicts) == exit_code(verdicts, FailOn.INCONCLUSIVE) == code
    assert exit_code(verdicts, FailOn.REGRESSION) == (0 if code == 21 and effects else code)
    assert exit_code(verdicts, None) == 0


def test_two_runs_of_a_variant_in_one_block_are_refused():
    runs = [*blocks_of(noisy(5)), run(3, "A", WOBBLE)]
    with pytest.raises(DataError, match="block 3"):
        one(runs)


@pytest.mark.parametrize("times", [(1.0, 0.0), (-1.0, 1.0), (1.0, math.nan), (math.inf, 1.0), (1e308, 1e308)])
def test_times_whose_mean_is_not_positive_and_finite_are_refused(times):
    for samples in (times, times[::-1]):
        with pytest.raises(DataError, match=r"run 'A1' .*positive and finite"):
            one([run(1, "A", samples), run(1, "B", (1.0,))])


def test_a_variant_compared_with_itself_is_refused():
    given = comparison(blocks_of([0.0]))
    with pytest.raises(DataError, match="itself"):
        judge([type(given)(given.key, "A", "A", given.runs, 1)], VerdictSettings())


@pytest.mark.parametrize("wrong", [{"margin": 0.0}, {"margin": 1.0}, {"margin": 3.0}, {"alpha": 0.0}, {"alpha": 0.5}])
def test_settings_that_no_verdict_can_be_made_with_are_refused(wrong):
    with pytest.raises(UsageError):
        VerdictSettings(**wrong)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_of_three_samples_or_fewer_no_share_above_all_of_them_is_spoken_of(blocks):
    verdict = one(blocks_of([0.01 * number for number in range(blocks)], wobble=(1.0,)))
    assert verdict.straggler_limit == pytest.approx(3 / blocks)
    assert verdict.straggler_note == "stragglers 0 | 0; rarer than 100 % can't be excluded"
