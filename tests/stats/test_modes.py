"""More than one mode within runs: found where there are two, not where there is one, whatever its shape."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.stats.flags import _CRITICAL, LEAST, MOST, excess_mass, pooled, several_modes

RNG = np.random.default_rng(16)


def runs(logs: np.ndarray, count: int = 6) -> list[tuple[float, ...]]:
    """``logs`` dealt out to so many runs, as seconds."""
    return [tuple(np.exp(part)) for part in np.array_split(logs, count)]


def test_two_states_are_found_whichever_comes_how_often() -> None:
    two = np.where(RNG.random(72) < 0.5, 0.0, np.log(20)) + 0.2 * RNG.standard_normal(72)
    assert several_modes(runs(two), apart=0.03)


@pytest.mark.parametrize(
    "logs",
    [
        0.2 * RNG.standard_normal(72),
        0.2 * RNG.laplace(size=72),
        0.3 * RNG.exponential(size=72),
        RNG.uniform(0, 0.5, 72),
        np.zeros(72),
    ],
    ids=["normal", "long tails", "one-sided", "uniform", "constant"],
)
def test_one_mode_is_one_whatever_its_shape(logs: np.ndarray) -> None:
    assert not several_modes(runs(logs), apart=0.03)


def test_runs_that_differ_from_each_other_have_one_mode_each() -> None:
    restarts = np.repeat([0.0, 1.0, 0.0, 1.0, 0.0, 1.0], 12)
    assert not several_modes(runs(restarts + 0.05 * RNG.standard_normal(72)), apart=0.03)


@pytest.mark.parametrize("factor", [3.0, 1 / 3])
@pytest.mark.parametrize("reps", [4, 6, 8, 12])
def test_a_straggler_in_some_runs_is_no_mode(reps: int, factor: float) -> None:
    alarms = 0
    for _ in range(20):
        dealt = np.exp(0.03 * RNG.standard_normal((12, reps)))
        dealt[:4, 0] *= factor
        alarms += several_modes([tuple(run) for run in dealt], apart=0.03)
    assert alarms <= 2


@pytest.mark.parametrize("reps", [6, 12])
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_two_states_are_found_in_short_runs_too(reps: int, share: float) -> None:
    logs = np.where(RNG.random((20, 12, reps)) < share, 0.4, 0.0) + 0.03 * RNG.standard_normal((20, 12, reps))
    assert sum(several_modes([tuple(np.exp(run)) for run in cell], apart=0.03) for cell in logs) >= 8


def test_rounded_times_have_no_answer() -> None:
    rounded = np.round(np.exp(0.1 * RNG.standard_normal(100)) / 0.05) * 0.05
    assert not several_modes([tuple(rounded)], apart=0.03)


def test_some_equal_times_of_many_are_no_rounding() -> None:
    two = np.where(RNG.random((10, 1000)) < 0.5, 1e-3, 2e-3) * np.exp(0.05 * RNG.standard_normal((10, 1000)))
    assert several_modes([tuple(np.round(run, 9)) for run in two], apart=0.03)


def test_what_lies_closer_together_than_the_margin_is_no_matter() -> None:
    two = np.where(RNG.random(72) < 0.5, 0.0, 0.02) + 0.0005 * RNG.standard_normal(72)
    assert not several_modes(runs(two), apart=0.03)
    assert several_modes(runs(two), apart=0.01)


def test_few_samples_say_nothing() -> None:
    two = np.tile([0.0, 3.0], LEAST // 2 - 1)
    assert not several_modes(runs(two, 2), apart=0.03)
    assert not several_modes([], apart=0.03)
    assert not several_modes([(1.0,)] * 40, apart=0.03)


def test_of_many_samples_an_even_choice_is_looked_at() -> None:
    assert len(pooled([tuple(np.exp(RNG.standard_normal(5 * MOST)))])) == MOST


def test_of_few_samples_each_is_held_against_the_second_fastest_of_its_run() -> None:
    values = pooled([(1.0, 4.0, 2.0), (5.0,), (12.0, 3.0, 6.0, 3.0), (1.0, 2.0)])
    assert values == pytest.approx(np.log([1 / 2, 2, 1, 2, 4]))


def test_one_uniform_sample_in_a_hundred_is_called_multimodal() -> None:
    """The rate at which it is wrong for the flattest single mode there is; 1000 samples of 100 values."""
    alarms = int((excess_mass(RNG.random((1000, 100))) * 10 > _CRITICAL).sum())
    assert alarms <= 20


def test_by_hand() -> None:
    """Two clumps of ten: two intervals hold all that one does, less what the hole between them costs."""
    values = np.concatenate([np.linspace(0, 0.1, 10), np.linspace(0.9, 1.0, 10)])
    assert 0.3 < excess_mass(values) <= 0.5
