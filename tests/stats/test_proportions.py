"""Rates over campaigns, against scipy."""

from __future__ import annotations

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from gpubench.stats.proportions import rate, tally


@given(st.integers(1, 200).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_interval_is_scipys_exact_one(counted):
    count, total = counted
    found = rate(count, total)
    oracle = scipy.stats.binomtest(count, total).proportion_ci(method="exact")
    assert (found.low, found.high) == (pytest.approx(oracle.low), pytest.approx(oracle.high))
    assert found.low <= found.value <= found.high


def test_of_nothing_nothing_is_known():
    found = rate(0, 0)
    assert (found.value, found.low, found.high) == (0, 0, 1)


def test_campaigns_are_counted_and_not_comparisons():
    found = tally(
        [
            ["equivalent", "equivalent"],
            ["equivalent", "inconclusive"],
            ["regression", "improvement"],
            ["broken", "equivalent"],
        ]
    )
    assert (found.alarms.count, found.equivalent.count, found.regressions.count) == (2, 1, 1)
    assert found.alarms.total == 4
