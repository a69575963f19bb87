"""Searches for a change: each move, and how often a whole search names a wrong one, through the simulation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from benchmarks.bisection.__main__ import outcome
from benchmarks.bisection.simulation import NOISY, QUIET, SHAPES, Scatter, Truth, search
from gpubench.stats.bisection import (
    Begin,
    Extend,
    PointClass,
    SearchAnswer,
    SearchSettings,
    Step,
    answer_so_far,
    classify,
    difference,
    further_steps,
    next_move,
)
from tests.conftest import examples

SETTINGS = SearchSettings()
MARGIN = SETTINGS.margin.log
EXACT = Scatter(run=1e-6, block=0.02)


def of(logs: Sequence[float], *, crash: Sequence[int] = (), seed: int = 1, scatter: Scatter = EXACT) -> SearchAnswer:
    """The answer of a search among points with these logs."""
    truth = Truth(np.asarray(logs), frozenset(crash), lambda _low, _high: True)
    answer, _ = search(truth, scatter, SETTINGS, np.random.default_rng(seed))
    return answer


def step(kind: str, points: Sequence[int], blocks: Sequence[Mapping[int, float]]) -> Step:
    return Step(kind, tuple(points), tuple(blocks), len(blocks))  # type: ignore[arg-type]


def test_a_search_begins_with_both_ends_alone() -> None:
    assert next_move(9, [], SETTINGS) == Begin("ends", (0, 8), SETTINGS.least)
    with pytest.raises(ValueError, match="two points"):
        next_move(1, [], SETTINGS)


def test_an_interrupted_step_is_completed_first() -> None:
    begun = Step("ends", (0, 8), ({0: 0.0, 8: 0.1},) * 2, 5)
    assert next_move(9, [begun], SETTINGS) == Extend(3)


def test_the_same_steps_give_the_same_move() -> None:
    ends = step("ends", (0, 63), [{0: 0.0, 63: 0.2 + 0.001 * at} for at in range(5)])
    move = next_move(64, [ends], SETTINGS)
    assert move == next_move(64, [ends], SETTINGS) == Begin("search", (0, 21, 42, 63), SETTINGS.least)


@pytest.mark.parametrize("at", range(1, 9))
def test_one_change_is_named_wherever_it_is(at: int) -> None:
    answer = of([0.2 if point >= at else 0.0 for point in range(9)])
    (change,) = answer.changes
    assert (answer.word, answer.low, answer.high, change.skipped, answer.others) == ("named", at - 1, at, (), ())
    assert answer.effect.mean == pytest.approx(0.2, abs=1e-4)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 9, 10, 27, 64])
def test_steps_of_one_change_are_known_before(count: int) -> None:
    def steps_with(at: int) -> int:
        steps: list[Step] = []
        while not isinstance(move := next_move(count, steps, SETTINGS), SearchAnswer):
            assert isinstance(move, Begin)
            block = {point: 0.2 if point >= at else 0.0 for point in move.points}
            steps.append(step(move.kind, move.points, [block] * move.blocks))
        return len(steps) - 1

    assert max(map(steps_with, range(1, count))) == further_steps(count)


def test_an_improvement_is_searched_like_a_regression() -> None:
    answer = of([0.0, 0.0, 0.0, -0.2, -0.2])
    assert (answer.word, answer.low, answer.high) == ("named", 2, 3)
    assert answer.effect.mean == pytest.approx(-0.2, abs=1e-4)
    assert answer.classes == {2: PointClass.SLOW, 3: PointClass.FAST}


def test_without_an_effect_beyond_the_margin_nothing_is_searched() -> None:
    assert of([0.0] * 9).word == "no effect"
    assert of([0.0] * 8 + [MARGIN / 2]).word == "no effect"


def test_a_change_among_points_that_crash_is_a_range() -> None:
    answer = of([0.0] * 4 + [0.2] * 5, crash=(3, 4, 5))
    assert (answer.word, answer.low, answer.high, answer.changes[0].skipped) == ("named", 2, 6, (3, 4, 5))
    assert {answer.classes[point] for point in (3, 4, 5) if point in answer.classes} == {PointClass.FAILED}


@pytest.mark.parametrize(
    ("heights", "changes"),
    [
        ((0.0, 0.1, 0.2), [(2, 3), (5, 6)]),
        ((0.0, 0.4, 0.2), [(2, 3), (5, 6)]),
        ((0.0, -0.2, 0.2), [(2, 3), (5, 6)]),
        ((0.0, MARGIN / 2, 0.2), [(5, 6)]),
        ((0.0, 0.2 - MARGIN / 2, 0.2), [(2, 3)]),
    ],
)
def test_of_two_changes_both_are_named(heights: Sequence[float], changes: list[tuple[int, int]]) -> None:
    answer = of([height for height in heights for _ in range(3)])
    assert (answer.word, answer.others) == ("named", ())
    assert [(change.low, change.high) for change in answer.shown] == changes
    assert answer.effect.mean > 0


def test_a_third_change_is_not_searched() -> None:
    answer = of([height for height in (0.0, 0.1, 0.2, 0.3) for _ in range(3)])
    assert [(change.low, change.high) for change in answer.shown] == [(2, 3), (5, 6)]
    assert [(low, high) for low, high in answer.others if low < 9 <= high]


def test_a_search_that_stops_at_the_second_change_has_named_the_first() -> None:
    truth = Truth(np.repeat([0.0, 0.1, 0.2], 3), frozenset(), lambda _low, _high: True)
    steps: list[Step] = []
    move = next_move(9, steps, SETTINGS)
    while not isinstance(move, SearchAnswer) and answer_so_far(9, steps, SETTINGS) is None:
        assert isinstance(move, Begin)
        blocks = [{at: truth.logs[at] + 0.001 * (number % 2) for at in move.points} for number in range(move.blocks)]
        steps.append(step(move.kind, move.points, blocks))
        move = next_move(9, steps, SETTINGS)
    assert isinstance(move, Begin)
    answer = answer_so_far(9, steps, SETTINGS)
    assert answer is not None
    assert (answer.word, answer.low, answer.high) == ("named", 2, 3)
    assert any(low < 6 <= high for low, high in answer.others)


def test_a_slope_has_no_point_at_which_it_begins() -> None:
    answer = of([0.2 * point / 63 for point in range(64)])
    assert answer.word == "gradual"
    assert answer.high - answer.low > 1


def test_ends_that_have_become_equal_end_the_search() -> None:
    ends = step("ends", (0, 8), [{0: 0.0, 8: 0.2 + 0.001 * at} for at in range(5)])
    later = step("search", (0, 3, 6, 8), [dict.fromkeys((0, 3, 6, 8), 0.001 * at) for at in range(5)])
    answer = next_move(9, [ends, later], SETTINGS)
    assert isinstance(answer, SearchAnswer)
    assert answer.word == "gone"


@pytest.mark.parametrize(
    ("height", "word"),
    [
        (0.0, PointClass.FAST),
        (0.2, PointClass.SLOW),
        (0.1, PointClass.BETWEEN),
        (0.3, PointClass.BEYOND),
        (-0.1, PointClass.BEYOND),
    ],
)
def test_the_class_of_a_point(height: float, word: PointClass) -> None:
    blocks = [
        {0: noise, 4: height + noise + 0.001 * (at % 3), 8: 0.2 + noise} for at, noise in enumerate((0, 3, 1, 2, 5))
    ]
    assert classify(9, step("search", (0, 4, 8), blocks), 1, SETTINGS) == {4: word}


def test_a_point_that_scatters_too_much_gets_more_blocks_and_is_then_skipped() -> None:
    ends = step("ends", (0, 2), [{0: 0.0, 2: 0.2 + 0.001 * at} for at in range(5)])
    wild = [{0: 0.0, 1: (-1.0) ** at, 2: 0.2 + 0.001 * at} for at in range(SETTINGS.most)]
    assert next_move(3, [ends, step("search", (0, 1, 2), wild[:5])], SETTINGS) == Extend(SETTINGS.more)
    skipped = next_move(3, [ends, step("search", (0, 1, 2), wild)], SETTINGS)
    assert isinstance(skipped, Begin)
    assert (skipped.kind, skipped.points) == ("last", (0, 2))


def test_a_difference_has_students_interval() -> None:
    blocks = [{0: 0.0, 1: value} for value in (0.1, 0.2, 0.3)]
    estimate = difference(blocks, 0, 1, 0.95)
    assert estimate is not None
    half = 4.302652729911275 * 0.1 / math.sqrt(3)  # t of 2 degrees of freedom, 97.5 %
    assert (estimate.low, estimate.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert difference(blocks, 0, 5, 0.95) is None


@pytest.mark.property
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scatter", [QUIET, NOISY], ids=["quiet", "noisy"])
def test_a_wrong_change_is_named_in_at_most_five_of_a_hundred_searches(shape: str, scatter: Scatter) -> None:
    words, count = Counter[str](), examples(12)
    for number in range(count):
        rng = np.random.default_rng([number, len(shape)])
        truth = SHAPES[shape](32, 3 * MARGIN, rng)
        answer, _ = search(truth, scatter, SETTINGS, rng)
        words[outcome(answer, truth)] += 1
    assert words["wrong"] <= 0.05 * count
    if shape in ("one change", "crashing points", "unbuilt points"):
        assert words["right"] >= 0.75 * count
