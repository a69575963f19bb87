"""How well a field tells the variants apart, against other ways of computing it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from gpubench.stats.paired_difference import paired_difference


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=3, max_size=9))
def test_paired_differences_are_scipys(pairs):
    found = paired_difference(pairs)
    before, after = np.transpose(pairs)
    assert found is not None
    assert (found.before, found.after) == pytest.approx((np.mean(before), np.mean(after)))
    assert found.difference == pytest.approx(found.after - found.before, abs=1e-9)
    if np.std(after - before) > 1e-6:
        oracle = scipy.stats.ttest_rel(after, before)
        assert (found.t, found.p) == pytest.approx((oracle.statistic, oracle.pvalue), rel=1e-6)
        assert found.size == pytest.approx(found.t / math.sqrt(len(pairs)))


@pytest.mark.parametrize("pairs", [[(1.0, 2.0)], [(0.1, 0.3), (0.2, 0.4)], [(0.0, 0.0)] * 3])
def test_differences_without_a_spread_have_no_t(pairs):
    found = paired_difference(pairs)
    assert found is not None
    assert (found.size, found.t, found.p) == (None, None, None)
    assert paired_difference([]) is None
