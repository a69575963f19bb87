"""Holm within families, against statsmodels."""

import numpy as np
import pytest

from gpubench.stats.decision import holm


@pytest.mark.parametrize("count", [1, 2, 7])
def test_holm_agrees_with_statsmodels(count):
    from statsmodels.stats.multitest import multipletests  # a second, which other test processes need not wait

    p = np.random.default_rng(count).uniform(0, 0.3, count)
    assert holm(p, np.zeros(count, dtype=int)) == pytest.approx(multipletests(p, method="holm")[1])


def test_families_are_adjusted_apart_and_a_missing_p_keeps_its_place():
    p = np.array([0.01, 0.02, np.nan, 0.04, 0.01])
    family = np.array([7, 3, 7, 7, 3])
    expected = [0.03, 0.02, np.nan, 0.08, 0.02]
    assert holm(p, family) == pytest.approx(expected, nan_ok=True)
