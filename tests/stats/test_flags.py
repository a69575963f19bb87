"""Flags stand beside a verdict and never change it."""

import dataclasses

import numpy as np
import pytest
import scipy
from campaign_by_hand import blocks_of, comparison, noisy, one, run, without

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


def test_a_machine_that_slows_down_over_the_campaign_is_flagged():
    drifting = one(with_times(lambda r, times, rng: plain(r, times, rng) * np.exp(0.01 * r.block)))
    assert drifting.flags == ("drift",)
    assert drifting.verdict == "equivalent"


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


def any_campaign(rng):
    """3 to 12 blocks in which tail, drift, order, warm-up and neighbours differ by about what a flag asks for."""
    count, reps = int(rng.integers(3, 13)), int(rng.integers(3, 9))
    slope, second, cold, tail = rng.choice([0, 1], 4) * rng.uniform(0, [0.02, 0.06, 0.1, 0.2]) * rng.choice([-1, 1], 4)
    noise, sticky = rng.choice([0.001, 0.01, 0.03]), rng.choice([0, 0.4, 0.8])
    first, runs = rng.integers(0, 2, count), []
    between = scipy.signal.lfilter([1], [1, -sticky], 0.01 * rng.standard_normal(count))
    for block in range(count):
        for side, variant in enumerate("AB"):
            order = int(side != first[block])
            samples = scipy.signal.lfilter([1], [1, -sticky], noise * rng.standard_normal(reps))
            samples[0] += cold
            samples[reps // 2] += tail * side
            level = slope * block + second * order + between[block] * side
            runs.append(run(block + 1, variant, np.exp(level + samples), order=order))
    return runs


def t_half_width(values, level):
    return scipy.stats.t.isf(level / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))


def lag1(values):
    centred = values - np.mean(values)
    return float(np.dot(centred[1:], centred[:-1]) / np.dot(centred, centred))


def by_scipy(runs):
    """The five flags that rest on times, from their definitions, cell by cell."""
    sides = [[np.array(r.wall_s) for r in runs if r.variant == variant] for variant in "AB"]
    first = np.array([1 if r.order == 0 else -1 for r in runs if r.variant == "A"])
    mean, median = (np.log([[f(times) for times in side] for side in sides]) for f in (np.mean, np.median))
    difference, half_margin, margin, count = mean[1] - mean[0], np.log(1.015), np.log(1.03), len(first)
    gap, turned = difference - (median[1] - median[0]), difference * first
    trend = scipy.stats.linregress(np.arange(count), mean.mean(axis=0))
    logs = [np.log(times) for side in sides for times in side]
    excess = [one[0] - np.median(one[1:]) for one in logs]
    freed = [lag1(one) + 1 / len(one) for one in logs]
    within = (
        sum(freed) > scipy.stats.norm.isf(0.01) * np.sqrt(sum(1 / len(one) for one in logs)) and np.mean(freed) > 0.2
    )
    raised = {
        "tail": abs(np.mean(gap)) > max(half_margin, t_half_width(gap, 0.05)),
        "drift": count >= 5 and trend.pvalue < 0.01 and abs(trend.slope) * (count - 1) > margin,
        "order": min(sum(first > 0), sum(first < 0)) >= 2
        and count >= 5
        and abs(np.mean(turned)) > max(half_margin, t_half_width(turned, 0.01)),
        "autocorrelation": within,
        "warm-up": len(logs[0]) >= 4 and np.mean(excess) > max(half_margin, t_half_width(excess, 0.01)),
    }
    return {name for name, flag in raised.items() if flag}


def test_flags_that_rest_on_times_are_those_of_their_definitions():
    rng = np.random.default_rng(20260101)
    campaigns = [any_campaign(rng) for _ in range(200)]
    family = [comparison(runs, workload=str(number)) for number, runs in enumerate(campaigns)]
    expected, found = [by_scipy(runs) for runs in campaigns], judge(family, VerdictSettings())
    for name in ("tail", "drift", "order", "autocorrelation", "warm-up"):
        assert 10 < sum(name in flags for flags in expected) < 190, name
        assert [name in verdict.flags for verdict in found] == [name in flags for flags in expected], name


@pytest.mark.parametrize(
    ("firsts", "flagged"), [("AAAAAABB", False), ("AAAAAAAB", True), ("BBBBBBBA", True), ("AAA", False), ("AAAA", True)]
)
def test_one_variant_first_in_more_than_three_quarters_of_four_blocks_or_more_is_flagged(firsts, flagged):
    runs = [
        run(r.block, r.variant, r.wall_s, order=int(firsts[r.block - 1] != r.variant))
        for r in blocks_of(noisy(len(firsts)))
    ]
    assert ("order-unbalanced" in one(runs).flags) is flagged


@pytest.mark.parametrize(
    ("lost_b", "lost_a", "flagged"), [((1,), (), False), ((1, 2), (3,), True), ((1, 2), (3, 4), False)]
)
def test_a_candidate_lost_twice_and_more_often_than_the_baseline_is_flagged(lost_b, lost_a, flagged):
    gone = [(block, "B") for block in lost_b] + [(block, "A") for block in lost_a]
    assert ("lost" in one(without(blocks_of(noisy(8)), *gone, status="lost")).flags) is flagged


@pytest.mark.parametrize(
    ("of_runs", "of_comparison", "flags"),
    [
        ({}, {"oversubscribed": True}, ("oversubscribed",)),  # processes polled on too few cores
        ({"unchecked": True}, {}, ("unchecked",)),  # nobody checked the answers
        *(({"moved": moved}, {}, ("no-traffic",)) for moved in (896, 2**20 - 1)),  # next to nothing between workers
        *(({"moved": moved}, {}, ()) for moved in (2**20, None)),
    ],
)
def test_what_its_runs_say_of_themselves_is_a_flag_of_a_comparison(of_runs, of_comparison, flags):
    runs = [dataclasses.replace(run, **of_runs) for run in with_times(plain)]
    (verdict,) = judge([dataclasses.replace(comparison(runs), **of_comparison)], VerdictSettings())
    assert (verdict.flags, verdict.moved) == (flags, of_runs.get("moved"))
