"""How well a field tells the variants apart, against other ways of computing it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from gpubench.stats.separation import paired_difference, separation


def information(values: Sequence[int], variants: Sequence[int]) -> float:
    """Mutual information as the sum of entropies, in nats."""

    def entropy(words: Sequence[object]) -> float:
        return float(scipy.stats.entropy(list(Counter(words).values())))

    return entropy(values) + entropy(variants) - entropy(list(zip(values, variants, strict=True)))


def by_enumeration(pairs: Sequence[tuple[int, int]]) -> float:
    """The same score with chance as the mean over every way to deal the values out to the variants."""
    values = [value for pair in pairs for value in pair]
    variants = [0, 1] * len(pairs)
    runs = range(len(values))
    dealt = [
        information(values, [int(run in chosen) for run in runs]) for chosen in itertools.combinations(runs, len(pairs))
    ]
    chance = float(np.mean(dealt))
    room = math.log(2) - chance
    return max(0.0, (information(values, variants) - chance) / room) if room > 1e-9 else 0.0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
def test_the_score_is_the_information_beyond_chance(pairs):
    assert separation(pairs) == pytest.approx(by_enumeration(pairs), abs=1e-9)


@pytest.mark.parametrize(
    ("pairs", "score"),
    [
        ([("a", "b")] * 5, 1),
        ([("a", "a"), ("b", "b"), ("c", "c")], 0),  # follows the blocks
        ([(f"{block}a", f"{block}b") for block in range(6)], 0),  # another value in every run
        ([("a", "b")], 0),  # one block can't tell
        ([("a", "b"), ("b", "a")] * 3, 0),
        ([], 0),
    ],
)
def test_only_a_value_that_goes_with_the_variant_separates(pairs, score):
    assert separation(pairs) == pytest.approx(score, abs=1e-9)


def test_the_more_blocks_differ_the_higher_the_score():
    scores = [separation([("a", "b")] * differ + [("a", "a")] * (8 - differ)) for differ in range(9)]
    assert scores == sorted(scores)
    assert 0 < scores[4] < scores[8] == pytest.approx(1)


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=3, max_size=9))
def test_paired_differences_are_scipys(pairs):
    found = paired_difference(pairs)
    before, after = np.transpose(pairs)
    assert found is not None
    assert (found.before, found.after) == (np.median(before), np.median(after))
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
