"""Speed-up, efficiency and the scalability law recover what they were given."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from gpubench.stats.scaling import Interval, Rule, ScalingPoint, Usl, capacity, fit_usl, speedups

SIZES = (1, 2, 4, 8, 16)


def law(
    contention: float, coherency: float, *, seed: int, rule: Rule = "strong", noise: float = 0.03, runs: int = 6
) -> list[ScalingPoint]:
    rng = np.random.default_rng(seed)
    found = []
    for size in SIZES:
        rate = 100 * capacity(np.asarray(float(size)), contention, coherency)
        work = size if rule == "weak" else 1
        found.append(ScalingPoint(size, 1, 1, tuple(math.log(work / rate) + rng.normal(0, noise, runs))))
    return found


def inside(interval: Interval, value: float) -> bool:
    assert interval.low is not None
    return interval.low <= value and (interval.high is None or value <= interval.high)


def test_perfect_strong_scaling_halves_the_time_and_perfect_weak_scaling_keeps_it() -> None:
    halved = [ScalingPoint(1, 2, 1, (0.0, 0.0)), ScalingPoint(2, 2, 1, (-math.log(2), -math.log(2)))]
    kept = [ScalingPoint(1, 2, 1, (0.0, 0.0)), ScalingPoint(1, 4, 1, (0.0, 0.0))]
    for measured, rule in ((halved, "strong"), (kept, "weak")):
        first, second = speedups(measured, rule)  # type: ignore[arg-type]
        assert (first.speedup.value, first.efficiency) == (1.0, Interval(1.0))
        assert (second.speedup.value, second.efficiency.value) == (pytest.approx(2.0), pytest.approx(1.0))


def test_sizes_are_ordered_by_their_threads_and_those_without_runs_left_out() -> None:
    measured = [ScalingPoint(2, 2, 3, (0.0,)), ScalingPoint(1, 1, 1, ()), ScalingPoint(1, 4, 2, (0.0,))]
    assert [one.at.units for one in speedups(measured, "strong")] == [8, 12]
    assert speedups([], "weak") == []


def test_the_interval_of_a_speed_up_is_welchs() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0, 0.02, 5), rng.normal(-0.6, 0.06, 8)
    (_, found) = speedups([ScalingPoint(1, 1, 1, tuple(first)), ScalingPoint(2, 1, 1, tuple(second))], "strong")
    expected = scipy.stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert found.speedup.low == pytest.approx(math.exp(expected.low))
    assert found.speedup.high == pytest.approx(math.exp(expected.high))
    own = scipy.stats.ttest_1samp(second, 0.0).confidence_interval(0.95)
    assert (found.seconds.low, found.seconds.high) == (
        pytest.approx(math.exp(own.low)),
        pytest.approx(math.exp(own.high)),
    )


def test_a_single_run_gives_no_interval() -> None:
    (_, found) = speedups([ScalingPoint(1, 1, 1, (0.0,)), ScalingPoint(2, 1, 1, (-0.5, -0.6))], "strong")
    assert found.speedup == Interval(math.exp(0.55))


@pytest.mark.parametrize(
    ("contention", "coherency", "rule"), [(0.05, 0.001, "strong"), (0.05, 0.001, "weak"), (0.2, 0.0, "strong")]
)
def test_the_law_is_recovered_and_its_intervals_are_honest(contention: float, coherency: float, rule: Rule) -> None:
    fits = [fit_usl(law(contention, coherency, seed=seed, rule=rule), rule) for seed in range(20)]
    found = [fit for fit in fits if fit is not None]
    assert len(found) == 20
    assert np.median([fit.contention.value for fit in found]) == pytest.approx(contention, abs=0.01)
    assert np.median([fit.coherency.value for fit in found]) == pytest.approx(coherency, abs=5e-4)
    # 20 intervals at 95 %: fewer than 16 hold the truth once in 400 such tests.
    assert sum(inside(fit.contention, contention) for fit in found) >= 16
    assert sum(inside(fit.coherency, coherency) for fit in found) >= 16
    assert sum(inside(fit.rate, 100.0) for fit in found) >= 16


@pytest.mark.parametrize(("contention", "coherency"), [(0.3, 0.01), (0.05, 0.0), (0.0, 0.0), (0.3, 0.001)])
def test_rates_without_any_scatter_give_the_law_itself(contention: float, coherency: float) -> None:
    measured = [
        ScalingPoint(
            units, 1, 1, (-math.log(units / (1 + contention * (units - 1) + coherency * units * (units - 1))),) * 2
        )
        for units in (1, 2, 4, 8, 16)
    ]
    fit = fit_usl(measured, "strong")
    assert fit is not None
    assert fit.contention.value == pytest.approx(contention, abs=1e-4)
    assert fit.coherency.value == pytest.approx(coherency, abs=1e-4)


def test_without_coherency_the_law_is_amdahls() -> None:
    fit = Usl(Interval(1.0), Interval(0.1), Interval(0.0), largest=16)
    assert fit.speedup(8) == pytest.approx(1 / (0.1 + 0.9 / 8))
    assert fit.peak is None


@pytest.mark.parametrize(("contention", "coherency"), [(3.1, 0.0), (2.8, 0.2), (0.2, 9.0)])
def test_where_the_second_unit_does_harm_the_most_is_done_by_one(contention: float, coherency: float) -> None:
    fit = Usl(Interval(1.0), Interval(contention), Interval(coherency), largest=4)
    assert fit.peak == 1
    assert fit.speedup(2) < fit.speedup(1)


def test_nothing_is_said_of_clusters_more_than_twice_as_large_as_the_largest() -> None:
    fit = Usl(Interval(1.0), Interval(0.05), Interval(0.001), largest=16)
    assert fit.speedup(32) > 0
    with pytest.raises(ValueError, match="more than 2 times the 16 that were measured"):
        fit.speedup(33)
    assert fit.peak == pytest.approx(math.sqrt(0.95 / 0.001))
    assert Usl(Interval(1.0), Interval(0.05), Interval(0.0001), largest=16).peak is None


def test_two_sizes_or_no_run_to_spare_give_no_law() -> None:
    assert fit_usl(law(0.05, 0.001, seed=1)[:2], "strong") is None
    assert fit_usl(law(0.05, 0.001, seed=1, runs=1)[:4], "strong") is None
    assert fit_usl([], "weak") is None
