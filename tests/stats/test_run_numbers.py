"""The numbers of a run that flags rest on, by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gpubench.stats.runs import number_runs


def test_the_lag_1_coefficient_is_zero_on_average_over_every_order_of_the_same_samples() -> None:
    orders = np.array(list(itertools.permutations([1.0, 1.1, 1.3, 2.0, 1.05])))
    assert float(number_runs(orders).lag1.mean()) == pytest.approx(0, abs=1e-12)


def test_samples_of_a_run_that_do_not_vary_resemble_nothing() -> None:
    assert number_runs(np.ones((1, 5))).lag1.tolist() == [0]


def test_the_relative_variance_is_that_of_the_mean_over_its_square() -> None:
    times = np.array([[1.0, 2.0, 3.0, 6.0]])
    assert number_runs(times).relative_variance[0] == pytest.approx(times.var(ddof=1) / 4 / 3.0**2)
    assert number_runs(times[:, :1]).relative_variance[0] == 0


def test_the_first_sample_is_held_against_the_median_of_the_rest_from_four_on() -> None:
    times = np.array([[4.0, 1.0, 2.0, 4.0]])
    assert number_runs(times).first_excess[0] == pytest.approx(np.log(2))
    assert number_runs(times[:, :3]).first_excess[0] == 0


def test_a_straggler_takes_more_than_one_and_a_half_times_the_median() -> None:
    assert number_runs(np.array([[1.0, 1.0, 1.0, 1.5, 1.51]])).stragglers.tolist() == [1]
