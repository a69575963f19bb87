"""The numbers of a run that flags rest on, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.stats.runs import number_runs


def test_samples_of_a_run_that_do_not_vary_resemble_nothing() -> None:
    assert number_runs(np.ones((1, 5))).lag1.tolist() == [0]


def test_the_relative_variance_is_that_of_the_mean_over_its_square() -> None:
    times = np.array([[1.0, 2.0, 3.0, 6.0]])
    assert number_runs(times).relative_variance[0] == pytest.approx(times.var(ddof=1) / 4 / 3.0**2)
    assert number_runs(times[:, :1]).relative_variance[0] == 0


def test_a_straggler_takes_more_than_one_and_a_half_times_the_median() -> None:
    assert number_runs(np.array([[1.0, 1.0, 1.0, 1.5, 1.51]])).stragglers.tolist() == [1]
