"""Change points: what they find, and how often they are wrong where nothing changes."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy

from gpubench.stats.change_points import _ROUNDING, FEWEST, LEAST, LONGEST, _greatest, change_points
from tests.conftest import examples


def series(draw: np.random.Generator, *stretches: tuple[int, float], noise: float = 0.01) -> list[float]:
    return [level + noise * draw.standard_normal() for count, level in stretches for _ in range(count)]


def most_alarms(families: int) -> float:
    """5 % are promised: more alarms than this come in one case of 2,000, and a release looks at several such cases.

    Of 1,500 families of long series with heavy tails, other ones than those below, 4.7 % raised an alarm.
    """
    return float(scipy.stats.binom.ppf(0.9995, families, 0.05))


@pytest.mark.parametrize("kind", ["normal", "heavy tails"])
def test_where_nothing_changes_an_alarm_is_as_rare_as_promised(kind: str) -> None:
    draw, families, alarms = np.random.default_rng(20260101), examples(60), 0
    for family in range(families):
        noise = draw.standard_normal((3, 20)) if kind == "normal" else draw.standard_t(3, (3, 20))
        alarms += any(change_points(noise.tolist(), seed=family))
    assert alarms <= most_alarms(families)


def test_the_promise_does_not_hold_for_days_that_resemble_the_day_before() -> None:
    draw, families, alarms = np.random.default_rng(20260103), 20, 0
    for family in range(families):
        values = draw.standard_normal(60)
        for day in range(1, 60):
            values[day] += 0.5 * values[day - 1]
        alarms += any(change_points([values.tolist()], seed=family))
    assert alarms > scipy.stats.binom.ppf(0.9999, families, 0.05)  # as docs/old-results.md says


def test_a_step_is_found_where_it_is_with_its_size() -> None:
    (found,) = change_points([series(np.random.default_rng(1), (14, 0.0), (14, 0.1))], seed=1)
    assert [one.at for one in found] == [14]
    assert found[0].effect == pytest.approx(0.105, abs=0.01)
    assert found[0].p <= 0.001


def energy(values: np.ndarray, split: int, end: int) -> float:
    """Matteson & James' Q of ``values[:end]`` parted at ``split``, from their definition."""

    def distances(some: np.ndarray, others: np.ndarray) -> float:
        return float(np.abs(some[:, None] - others[None, :]).sum())

    left, right = values[:split], values[split:end]
    m, n = len(left), len(right)
    own = distances(left, left) / (m * (m - 1)) + distances(right, right) / (n * (n - 1))
    return m * n / (m + n) * (2 * distances(left, right) / (m * n) - own)


def places(points: int) -> list[tuple[int, int]]:
    """Every split and end with LEAST points on both sides."""
    return [(split, end) for end in range(2 * LEAST, points + 1) for split in range(LEAST, end - LEAST + 1)]


def test_a_change_is_where_the_energy_statistic_is_greatest() -> None:
    draw = np.random.default_rng(10)
    many = [series(draw, (place, 0.0), (18 - place, 0.025)) for place in (4, 6, 8, 10, 12, 14) for _ in range(2)]
    compared = 0
    for values, found in zip(many, change_points(many, seed=10), strict=True):
        best, _ = max(places(18), key=lambda place: energy(np.array(values), *place))
        if len(found) == 1:
            assert found[0].at == best
            compared += 1
    assert compared >= 8


def test_p_is_the_share_of_all_orders_that_reach_the_statistic_also_by_equal_values() -> None:
    values = np.array([0.0] * 4 + [0.7] * 4)  # float32 rounds it down
    orders = [np.isin(np.arange(8), late) * 0.7 for late in itertools.combinations(range(8), 4)]
    greatest = [max(energy(order, *place) for place in places(8)) for order in (values, *orders)]
    exact = np.mean(np.array(greatest[1:]) >= greatest[0] - 1e-9)
    (found,) = change_points([values.tolist()], seed=13)
    assert [one.p for one in found] == [pytest.approx(exact, abs=4 * math.sqrt(exact / 1000))]


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "an outlier"])
@pytest.mark.parametrize("points", [8, 60, LONGEST])
def test_single_precision_changes_no_statistic_by_more_than_is_allowed_for(kind: str, points: int) -> None:
    draw = np.random.default_rng(14)
    values = draw.standard_t(1, points) if kind == "heavy tails" else draw.standard_normal(points)
    values[0] = 1e4 if kind == "an outlier" else values[0]
    orders = draw.permuted(np.tile(values - np.median(values), (100, 1)), axis=1).T
    exact, rounded = (_greatest(np.ascontiguousarray(orders, kind))[0] for kind in (np.float64, np.float32))
    assert np.max(np.abs(rounded - exact)) < _ROUNDING * np.sum(np.abs(orders[:, 0]))


def test_a_change_in_one_of_many_series_is_found() -> None:
    draw = np.random.default_rng(15)
    many = [series(draw, (16, 0.0)) for _ in range(600)]
    found = change_points([*many, series(draw, (10, 0.0), (10, 0.2))], seed=15)
    assert [len(one) for one in found] == [0] * 600 + [1]


def test_a_bump_of_three_points_is_two_changes() -> None:
    (found,) = change_points([series(np.random.default_rng(2), (10, 0.0), (3, 0.3), (15, 0.0))], seed=2)
    assert [one.at for one in found] == [10, 13]
    assert [one.effect > 0 for one in found] == [True, False]


def test_one_outlier_is_no_change() -> None:
    assert change_points([series(np.random.default_rng(3), (10, 0.0), (1, 0.6), (15, 0.0))], seed=3) == [[]]


def test_too_short_a_series_is_never_called_changed() -> None:
    assert change_points([[0.0] * 4 + [1.0] * (FEWEST - 5)], seed=5) == [[]]


def test_equal_figures_throughout_are_no_change() -> None:
    assert change_points([[1.0] * 20], seed=6) == [[]]


def test_a_series_has_the_same_p_whatever_is_searched_before_it() -> None:
    draw = np.random.default_rng(16)
    weak, *strong = (series(draw, (count, 0.0), (count, step)) for count, step in [(10, 0.01), (10, 0.3), (15, 0.3)])
    firsts = [change_points([before, weak], seed=16, alpha=1.0)[1] for before in strong]
    assert firsts[0] == firsts[1]
    assert 0.002 < firsts[0][0].p < 1


@pytest.mark.parametrize("kind", ["normal", "heavy tails"])
@pytest.mark.property
def test_a_long_series_in_which_nothing_changes_raises_an_alarm_as_rarely(kind: str) -> None:
    draw, families, alarms = np.random.default_rng(20260102), examples(24), 0
    for family in range(families):
        shape = (2, LONGEST + 1 + 13 * (family % 7))
        noise = draw.standard_normal(shape) if kind == "normal" else draw.standard_t(3, shape)
        alarms += any(change_points(noise.tolist(), seed=family))
    assert alarms <= most_alarms(families)


@pytest.mark.parametrize("place", [300, 1999])
def test_a_step_in_a_long_series_is_found_at_its_very_date(place: int) -> None:
    (found,) = change_points([series(np.random.default_rng(8), (place, 0.0), (2300 - place, 0.1))], seed=8)
    (effect,) = [one.effect for one in found if one.at == place]
    assert effect == pytest.approx(0.105, abs=0.003)


def test_who_waits_is_told_how_many_series_have_been_searched() -> None:
    told: list[tuple[int, int]] = []
    long_enough, short = [0.0] * FEWEST, [0.0] * (FEWEST - 1)
    change_points([long_enough, short, long_enough], seed=9, searching=lambda *far: told.append(far))
    assert told == [(0, 2), (1, 2)]


def test_the_longest_series_that_is_searched_as_it_is_needs_little_memory() -> None:
    values = series(np.random.default_rng(12), (LONGEST, 0.0))
    tracemalloc.start()
    try:
        change_points([values], seed=12)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 150 * 2**20  # all permutations of a chunk at once, as squares of its length, take 320 MB and more


@pytest.mark.parametrize("level", [0.0, 0.1])
def test_what_rounding_leaves_of_equal_times_is_no_change(level: float) -> None:
    few, many = (math.log(math.fsum([1.35] * count) / count) for count in (2, 3))
    assert few != many
    (found,) = change_points([[few] * 10 + [many] * 10 + [few + level] * 10], seed=1)
    assert [one.at for one in found] == ([20] if level else [])
