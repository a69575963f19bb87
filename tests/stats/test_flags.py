"""Flags stand beside a verdict and never change it."""

import dataclasses

import numpy as np
import pytest
from campaign_by_hand import blocks_of, comparison, noisy, one, run, without
from scipy import signal

from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import judge


def with_times(change, *, count=8, reps=10, sd=0.003, seed=3):
    """Blocks of equal variants whose samples are changed by ``change(run, samples)``."""
    rng = np.random.default_rng(seed)
    runs = blocks_of(noisy(count, sd=0.002), wobble=np.exp(sd * rng.standard_normal(reps)))
    return [run(r.block, r.variant, change(r, np.array(r.wall_s), rng), order=r.order) for r in runs]


def plain(_, times, rng):
    return times * np.exp(0.003 * rng.standard_normal(len(times)))


def test_quiet_campaigns_raise_no_flag():
    assert one(with_times(plain)).flags == ()


def test_tail_is_flagged_when_mean_and_median_disagree():
    def straggle(r, times, rng):
        times = plain(r, times, rng)
        times[r.block % 10] *= 2.0 if r.variant == "B" else 1.0
        return times

    verdict = one(with_times(straggle))
    assert verdict.median_effect == pytest.approx(0, abs=0.005)
    assert verdict.effect == pytest.approx(0.1, abs=0.01)
    assert "tail" in verdict.flags


def test_a_tail_smaller_than_half_the_margin_is_not_flagged():
    def straggle(r, times, rng):
        times = plain(r, times, rng)
        times[0] *= 1.1 if r.variant == "B" else 1.0
        return times

    assert "tail" not in one(with_times(straggle)).flags
    assert "tail" in one(with_times(straggle), VerdictSettings(margin=0.01)).flags


def test_a_machine_that_slows_down_over_the_campaign_is_flagged():
    drifting = one(with_times(lambda r, times, rng: plain(r, times, rng) * np.exp(0.01 * r.block)))
    assert drifting.flags == ("drift",)
    assert drifting.verdict == "equivalent"


def test_first_samples_slower_than_the_rest_are_flagged():
    def cold(r, times, rng):
        return plain(r, times, rng) * np.where(np.arange(len(times)) == 0, 1.3, 1.0)

    assert "warm-up" in one(with_times(cold)).flags


def test_samples_that_resemble_their_neighbours_are_flagged():
    def sticky(_, times, rng):
        return np.exp(signal.lfilter([0.01], [1, -0.9], rng.standard_normal(len(times))))

    assert "autocorrelation" in one(with_times(sticky, reps=30)).flags


def test_block_differences_that_resemble_their_neighbours_are_flagged():
    swing = 0.01 * np.sin(np.arange(16) / 16 * 2 * np.pi)
    assert "autocorrelation" in one(swing).flags


def test_samples_that_resemble_their_neighbours_but_little_are_not_flagged():
    def hardly(_, times, rng):
        return np.exp(signal.lfilter([0.01], [1, -0.12], rng.standard_normal(len(times))))

    assert "autocorrelation" not in one(with_times(hardly, reps=300)).flags


def test_few_samples_that_resemble_their_neighbours_are_not_flagged():
    rising = (0.99, 1.0, 1.01)
    assert "autocorrelation" not in one(blocks_of(noisy(3), wobble=rising)).flags


def test_fewer_pairs_than_planned_are_flagged():
    runs = without(blocks_of(noisy(8)), (2, "A"), status="skipped")
    assert "incomplete" in one(runs).flags
    assert "incomplete" not in judge([comparison(blocks_of(noisy(7)), planned=7)], VerdictSettings())[0].flags


def test_flags_are_rare_where_nothing_is_wrong():
    rng = np.random.default_rng(11)
    family = []
    for n in range(300):
        runs = [
            run(
                r.block, r.variant, np.exp(0.01 * rng.standard_normal(6) + 0.008 * rng.standard_normal()), order=r.order
            )
            for r in blocks_of([0.0] * 8)
        ]
        family.append(comparison(runs, workload=str(n)))
    raised = [flag for verdict in judge(family, VerdictSettings()) for flag in verdict.flags]
    # Six kinds of flags at 1 % or less each over 300 cells: 18 expected at the most.
    assert len(raised) < 32


def test_a_comparison_whose_processes_polled_on_too_few_cores_says_so():
    crowded = dataclasses.replace(comparison(with_times(plain)), oversubscribed=True)
    (verdict,) = judge([crowded], VerdictSettings())
    assert verdict.flags == ("oversubscribed",)


def test_a_comparison_whose_answers_nobody_checked_says_so():
    (verdict,) = judge([dataclasses.replace(comparison(with_times(plain)), unchecked=True)], VerdictSettings())
    assert verdict.flags == ("unchecked",)
