"""More than one mode within runs: found where there are two, not where there is one, whatever its shape."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.stats.modes import _CRITICAL, LEAST, MOST, excess_mass, pooled, several_modes

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


def test_one_uniform_sample_in_a_hundred_is_called_multimodal() -> None:
    """The rate at which it is wrong for the flattest single mode there is; 1000 samples of 100 values."""
    alarms = int((excess_mass(RNG.random((1000, 100))) * 10 > _CRITICAL).sum())
    assert alarms <= 20


def test_by_hand() -> None:
    """Two clumps of ten: two intervals hold all that one does, less what the hole between them costs."""
    values = np.concatenate([np.linspace(0, 0.1, 10), np.linspace(0.9, 1.0, 10)])
    assert 0.3 < excess_mass(values) <= 0.5
