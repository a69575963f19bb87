"""Searches among settings: each move, and how often a whole search names a wrong one, through the simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.bisection.settings import SHAPES, outcome
from benchmarks.bisection.simulation import QUIET, Scatter, SettingTruth, search_settings
from gpubench.stats.bisection import Begin, Extend, SearchSettings, Step
from gpubench.stats.setting_search import (
    FIRST,
    LAST,
    TRIAL,
    SettingAnswer,
    end_of,
    next_setting_move,
    point_of,
    settings_of,
)
from tests.conftest import examples

SETTINGS = SearchSettings()
MARGIN = SETTINGS.margin.log
EXACT = Scatter(run=1e-4, block=0.02)


def of(truth: SettingTruth, scatter: Scatter = EXACT) -> SettingAnswer:
    return search_settings(truth, scatter, SETTINGS, np.random.default_rng(1))[0]


def effects(count: int, **sizes: float) -> np.ndarray:
    """``at_3=0.2``: the log that setting 3 adds."""
    return np.asarray([sizes.get(f"at_{at}", 0.0) for at in range(count)])


def test_a_point_is_an_end_and_what_is_as_on_the_other_side() -> None:
    for end in (FIRST, LAST):
        point = point_of(end, {0, 3})
        assert (end_of(point), settings_of(point)) == (end, frozenset({0, 3}))
    assert (point_of(FIRST), point_of(LAST)) == (FIRST, LAST)


def test_the_steps_are_the_ends_then_all_reverted_then_two_subsets() -> None:
    assert next_setting_move([True] * 8, [], SETTINGS) == Begin("ends", (FIRST, LAST), SETTINGS.least)
    noise = [0.001, 0.002, 0.0]
    ends = Step("ends", (FIRST, LAST), tuple({FIRST: 0.0, LAST: 0.2 + each} for each in noise), 3)
    whole = point_of(LAST, range(8))
    assert next_setting_move([True] * 8, [ends], SETTINGS) == Begin("search", (FIRST, LAST, whole), TRIAL)
    blocks = tuple({FIRST: 0.0, LAST: 0.2 + each, whole: 2 * each} for each in noise)
    second = Step("search", (FIRST, LAST, whole), blocks, 3)
    assert next_setting_move([True] * 8, [ends, Step("search", second.points, blocks[:1], 1)], SETTINGS) == Extend(2)
    assert next_setting_move([True] * 8, [ends, Step("search", second.points, blocks[:2], 3)], SETTINGS) == Extend(1)
    halves = (point_of(LAST, range(4)), point_of(LAST, range(4, 8)))
    move = next_setting_move([True] * 8, [ends, second], SETTINGS)
    assert move == Begin("search", (LAST, whole, *halves), TRIAL)
    tried = Step("search", (LAST, whole, *halves), ({LAST: 0.2, whole: 0.0, halves[1]: 0.2},), 1)
    move = next_setting_move([True] * 8, [ends, second, tried], SETTINGS)
    assert isinstance(move, Begin)
    assert move.points == (LAST, whole, halves[1])  # what failed is not run again


@pytest.mark.parametrize("at", range(8))
def test_one_setting_is_named_with_its_figures(at: int) -> None:
    answer = of(SettingTruth(effects(8, **{f"at_{at}": 0.2}), code=0.1))
    assert (answer.word, answer.slow, answer.chosen) == ("named", LAST, (at,))
    assert answer.effect.mean == pytest.approx(0.3, abs=0.001)
    assert answer.gain is not None
    assert answer.rest is not None
    assert answer.applied is not None
    assert answer.share is not None
    assert (answer.gain.mean, answer.rest.mean, answer.applied.mean, answer.share.value) == pytest.approx(
        (0.2, 0.1, 0.2, 2 / 3), abs=0.005
    )


def test_an_end_that_is_faster_is_the_fast_one() -> None:
    answer = of(SettingTruth(-effects(4, at_2=0.2)))
    assert (answer.word, answer.slow, answer.chosen) == ("named", FIRST, (2,))


def test_two_and_three_settings_are_named_and_four_are_not() -> None:
    assert of(SettingTruth(effects(8, at_1=0.1, at_6=0.1))).chosen == (1, 6)
    three = of(SettingTruth(effects(8, at_1=0.1, at_4=0.1, at_6=0.1)))
    assert (three.word, three.chosen) == ("named", (1, 4, 6))
    assert of(SettingTruth(effects(8, at_1=0.1, at_2=0.1, at_4=0.1, at_6=0.1))).word == "several"


def test_a_slow_version_is_not_a_setting_nor_is_anything_without_settings() -> None:
    assert of(SettingTruth(effects(8), code=0.2)).word == "none of them"
    assert of(SettingTruth(effects(0), code=0.2)).word == "none of them"
    assert of(SettingTruth(effects(8), code=0.0)).word == "no effect"


def test_settings_with_which_the_slow_end_does_not_start_are_left_out() -> None:
    answer = of(SettingTruth(effects(8, at_6=0.2), crash=frozenset({2, 5})))
    assert (answer.word, answer.chosen, answer.excluded) == ("named", (6,), (2, 5))
    assert of(SettingTruth(effects(2, at_1=0.2), crash=frozenset({0, 1}))).word == "undecided"


def test_of_two_settings_one_of_which_crashes_the_other_is_named() -> None:
    answer = of(SettingTruth(effects(2, at_0=0.2), crash=frozenset({1})))
    assert (answer.word, answer.chosen, answer.excluded) == ("named", (0,), (1,))
    alone = of(SettingTruth(effects(3), code=0.2, crash=frozenset({1})))
    assert (alone.word, alone.excluded) == ("none of them", (1,))
    assert alone.effect.mean == pytest.approx(0.2, abs=0.001)


def moves(truth: SettingTruth, fails: Callable[[int, int], bool]) -> SettingAnswer:
    """A search in which the runs of a point fail by ``fails`` (number of the step, point)."""
    steps: list[Step] = []
    while not isinstance(move := next_setting_move([True] * 8, steps, SETTINGS), SettingAnswer):
        assert len(steps) < 60
        if isinstance(move, Begin):
            steps.append(Step(move.kind, move.points, (), 0))
        step, number, block = steps[-1], len(steps) - 1, len(steps[-1].blocks)
        new = [
            {at: (truth.log(at) or 0.0) + at * (block + more) * 1e-6 for at in step.points if not fails(number, at)}
            for more in range(move.blocks)
        ]
        steps[-1] = Step(step.kind, step.points, (*step.blocks, *new), block + move.blocks)
    return move


def test_a_slow_end_that_fails_from_some_step_on_ends_the_search() -> None:
    answer = moves(SettingTruth(effects(8, at_3=0.2)), lambda number, at: number >= 2 and at == LAST)
    assert answer.word == "failed"
    assert answer.effect.mean == pytest.approx(0.2, abs=0.001)


def test_one_failed_run_of_all_reverted_is_repeated() -> None:
    whole, failed = point_of(LAST, range(8)), set()

    def fails(number: int, at: int) -> bool:
        once = at == whole and number not in failed
        failed.add(number if once else -1)
        return once

    answer = moves(SettingTruth(effects(8, at_3=0.2)), fails)
    assert (answer.word, answer.chosen, answer.excluded) == ("named", (3,), ())


def test_a_setting_that_the_fast_end_does_not_know_is_named_without_its_figure_there() -> None:
    truth = SettingTruth(effects(3, at_1=0.2))
    steps: list[Step] = []
    while not isinstance(move := next_setting_move([True, False, True], steps, SETTINGS), SettingAnswer):
        if isinstance(move, Begin):
            assert len(move.points) <= 4
            assert not any(end_of(point) == FIRST and settings_of(point) for point in move.points)
            steps.append(Step(move.kind, move.points, (), 0))
        step, count = steps[-1], len(steps[-1].blocks) + move.blocks
        blocks = [{at: (truth.log(at) or 0.0) + at * number * 1e-4 for at in step.points} for number in range(count)]
        steps[-1] = Step(step.kind, step.points, tuple(blocks), count)
    assert (move.word, move.chosen, move.applied) == ("named", (1,), None)


@pytest.mark.property
@pytest.mark.parametrize("shape", SHAPES)
def test_a_setting_that_does_not_matter_is_named_in_at_most_five_of_a_hundred_searches(shape: str) -> None:
    words, count = Counter[str](), examples(8)
    for number in range(count):
        rng = np.random.default_rng([number, len(shape)])
        truth = SHAPES[shape](5 * MARGIN, rng)
        answer, _ = search_settings(truth, QUIET, SETTINGS, rng)
        words[outcome(answer, truth, SETTINGS)] += 1
    assert words["wrong"] <= 0.05 * count
    if shape in ("one setting", "setting and code"):
        assert words["right"] >= 0.85 * count
