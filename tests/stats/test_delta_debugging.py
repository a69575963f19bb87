"""ddmin as a function of tests: it finds a 1-minimal subset, ends, and takes the unresolved as the paper does."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from gpubench.stats.delta_debugging import Subset, Untested, ddmin

SIZES = st.integers(1, 14)


def searched(size: int, test: Callable[[Subset], bool | None]) -> tuple[Subset, dict[Subset, bool | None]]:
    """The result of asking two at a time, and all tests."""
    outcomes: dict[Subset, bool | None] = {}
    for _ in range(4 * size * size + 40):
        step = ddmin(range(size), outcomes)
        if not isinstance(step, Untested):
            return step, outcomes
        assert step.subsets
        assert not any(subset in outcomes for subset in step.subsets)
        outcomes |= {subset: test(subset) for subset in step.subsets[:2]}
    raise AssertionError("it doesn't end")


@given(SIZES, st.data())
def test_of_a_monotone_effect_the_result_is_minimal(size: int, data: st.DataObject) -> None:
    subsets = st.frozensets(st.integers(0, size - 1), min_size=1)
    causes = data.draw(st.lists(subsets, min_size=1, max_size=3))

    def has_effect(subset: Subset) -> bool:
        return any(cause <= subset for cause in causes)

    result, outcomes = searched(size, has_effect)
    assert has_effect(result)
    assert not any(has_effect(result - {item}) for item in result)
    assert len(outcomes) <= size * size + 3 * size + 2  # the paper's bound, and one test in vain at each step


@given(SIZES, st.data())
def test_unresolved_tests_end_too_and_the_result_has_the_effect(size: int, data: st.DataObject) -> None:
    answers: dict[Subset, bool | None] = {frozenset(range(size)): True}
    result, _ = searched(
        size, lambda subset: answers.setdefault(subset, data.draw(st.sampled_from((True, False, None))))
    )
    assert answers[result]
    if len(result) > 1:
        assert not any(answers.get(result - {item}) for item in result)


def test_one_of_eight_takes_three_times_two_tests() -> None:
    result, outcomes = searched(8, lambda subset: 5 in subset)
    assert (result, len(outcomes)) == (frozenset({5}), 6)
