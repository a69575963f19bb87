"""Speed-up, efficiency and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from gpubench.stats.ratio import Interval
from gpubench.stats.scaling import ScalingPoint, times_at_sizes


def test_perfect_strong_scaling_halves_the_time_and_perfect_weak_scaling_keeps_it() -> None:
    halved = [ScalingPoint(1, 2, 1, (0.0, 0.0)), ScalingPoint(2, 2, 1, (-math.log(2), -math.log(2)))]
    kept = [ScalingPoint(1, 2, 1, (0.0, 0.0)), ScalingPoint(1, 4, 1, (0.0, 0.0))]
    for measured, rule in ((halved, "strong"), (kept, "weak")):
        first, second = times_at_sizes(measured, rule)  # type: ignore[arg-type]
        assert (first.speedup.value, first.efficiency) == (1.0, Interval(1.0))
        assert (second.speedup.value, second.efficiency.value) == (pytest.approx(2.0), pytest.approx(1.0))


def test_sizes_are_ordered_by_their_threads_and_those_without_runs_left_out() -> None:
    measured = [ScalingPoint(2, 2, 3, (0.0,)), ScalingPoint(1, 1, 1, ()), ScalingPoint(1, 4, 2, (0.0,))]
    assert [one.at.units for one in times_at_sizes(measured, "strong")] == [8, 12]
    assert times_at_sizes([], "weak") == []
    assert [(one.at.units, one.speedup) for one in times_at_sizes(measured, "none")] == [(8, None), (12, None)]


def test_the_interval_of_a_speed_up_is_welchs() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0, 0.02, 5), rng.normal(-0.6, 0.06, 8)
    (_, found) = times_at_sizes([ScalingPoint(1, 1, 1, tuple(first)), ScalingPoint(2, 1, 1, tuple(second))], "strong")
    expected = scipy.stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert found.speedup.low == pytest.approx(math.exp(expected.low))
    assert found.speedup.high == pytest.approx(math.exp(expected.high))
    own = scipy.stats.ttest_1samp(second, 0.0).confidence_interval(0.95)
    assert (found.seconds.low, found.seconds.high) == (
        pytest.approx(math.exp(own.low)),
        pytest.approx(math.exp(own.high)),
    )


def test_a_single_run_gives_no_interval() -> None:
    (_, found) = times_at_sizes([ScalingPoint(1, 1, 1, (0.0,)), ScalingPoint(2, 1, 1, (-0.5, -0.6))], "strong")
    assert found.speedup == Interval(math.exp(0.55))
