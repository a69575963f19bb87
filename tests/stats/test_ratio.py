"""Fieller's interval of a ratio of two means."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.stats.ratio import ratio_of_means


def test_the_bounds_are_where_students_t_is_at_its_quantile() -> None:
    above, below = [0.30, 0.36, 0.33, 0.28], [0.52, 0.49, 0.55, 0.50]
    ratio = ratio_of_means(above, below, 0.95)
    assert ratio is not None
    assert ratio.value == pytest.approx(np.mean(above) / np.mean(below))
    for bound in (ratio.low, ratio.high):
        assert bound is not None
        rest = np.asarray(above) - bound * np.asarray(below)
        t = np.mean(rest) / (np.std(rest, ddof=1) / 2)
        assert abs(t) == pytest.approx(3.182446305284263)  # t of 3 degrees of freedom, 97.5 %


def test_without_a_clear_denominator_there_are_no_bounds() -> None:
    ratio = ratio_of_means([0.1, 0.2, 0.1], [0.1, -0.2, 0.2], 0.95)
    assert ratio is not None
    assert (ratio.low, ratio.high) == (None, None)
    assert ratio_of_means([0.1], [0.1], 0.95) is None


def test_the_interval_covers_the_true_ratio() -> None:
    rng, covered = np.random.default_rng(1), 0
    for _ in range(400):
        shared = rng.normal(0, 0.02, 6)
        below = 0.3 + shared + rng.normal(0, 0.03, 6)
        above = 0.2 + shared + rng.normal(0, 0.03, 6)
        ratio = ratio_of_means(above.tolist(), below.tolist(), 0.95)
        covered += (
            ratio is not None and ratio.low is not None and ratio.high is not None and ratio.low < 2 / 3 < ratio.high
        )
    assert 0.92 < covered / 400 < 0.98
