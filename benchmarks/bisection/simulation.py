"""Searches among points whose true figures are known, through the real decisions (``gpubench.stats.bisection``)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpubench.stats.bisection import Begin, SearchAnswer, SearchSettings, Step, next_move
from gpubench.stats.setting_search import LAST, SettingAnswer, end_of, next_setting_move, settings_of

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Scatter:
    """How logs of figures scatter: of a run, of a block; stragglers are runs that take 8 % longer in the mean."""

    run: float
    block: float
    stragglers: float = 0.0
    drift: float = 0.0005


QUIET = Scatter(run=0.02, block=0.02)
NOISY = Scatter(run=0.035, block=0.03, stragglers=0.05)


@dataclasses.dataclass(frozen=True)
class Truth:
    """The logs of every point's figure, which points crash, and whether naming a change between two points is right.

    ``unbuilt``: points that can't be built: a step of no others has no runs.
    """

    logs: Floats
    crash: frozenset[int]
    is_right: Callable[[int, int], bool]
    unbuilt: frozenset[int] = frozenset()


def one_change(points: int, effect: float, rng: np.random.Generator) -> Truth:
    """All points from a random one on are slower."""
    at = int(rng.integers(1, points))
    logs = np.where(np.arange(points) >= at, effect, 0.0)
    return Truth(logs, frozenset(), lambda low, high: low < at <= high)


def two_changes(points: int, effect: float, rng: np.random.Generator) -> Truth:
    """Half of the effect at each of two random points; either is right."""
    both = sorted(int(at) for at in rng.choice(np.arange(1, points), 2, replace=False))
    logs = sum(np.where(np.arange(points) >= at, effect / 2, 0.0) for at in both)
    return Truth(np.asarray(logs), frozenset(), lambda low, high: any(low < at <= high for at in both))


def no_change(points: int, _effect: float, _rng: np.random.Generator) -> Truth:
    """Nothing to be found."""
    return Truth(np.zeros(points), frozenset(), lambda _low, _high: False)


def slope(points: int, effect: float, _rng: np.random.Generator) -> Truth:
    """Every point is a little slower than the one before it: one point is never the answer, a range may be."""
    return Truth(effect * np.arange(points) / (points - 1), frozenset(), lambda low, high: high - low > 1)


def crashes(points: int, effect: float, rng: np.random.Generator) -> Truth:
    """One change, and a fifth of the points can't be measured."""
    truth = one_change(points, effect, rng)
    crash = rng.choice(np.arange(1, points - 1), max(1, points // 5), replace=False)
    return dataclasses.replace(truth, crash=frozenset(int(at) for at in crash))


def unbuilt(points: int, effect: float, rng: np.random.Generator) -> Truth:
    """One change, and a fifth of the points can't be built."""
    truth = crashes(points, effect, rng)
    return dataclasses.replace(truth, crash=frozenset(), unbuilt=truth.crash)


SHAPES = {
    "one change": one_change,
    "two changes": two_changes,
    "no change": no_change,
    "slope": slope,
    "crashing points": crashes,
    "unbuilt points": unbuilt,
}


def search(
    truth: Truth, scatter: Scatter, settings: SearchSettings, rng: np.random.Generator
) -> tuple[SearchAnswer, int]:
    """The answer, and how many runs were measured."""
    steps: list[Step] = []
    runs, blocks, last = 0, 0, len(truth.logs) - 1
    while True:
        move = next_move(last + 1, steps, settings)
        if isinstance(move, SearchAnswer):
            return move, runs
        if isinstance(move, Begin):
            has_runs = move.kind != "search" or any(0 < at < last and at not in truth.unbuilt for at in move.points)
            steps.append(Step(move.kind, move.points, (), move.blocks if has_runs else 0))
            if not has_runs:
                continue
        step = steps[-1]
        measured = []
        started = [at for at in step.points if at not in truth.unbuilt]
        for _ in range(move.blocks):
            shared = rng.normal(0, scatter.block) + scatter.drift * blocks
            measured.append(
                {at: truth.logs[at] + shared + _run(scatter, rng) for at in started if at not in truth.crash}
            )
            blocks += 1
            runs += len(started)
        planned = max(step.planned, len(step.blocks) + move.blocks)
        steps[-1] = Step(step.kind, step.points, (*step.blocks, *measured), planned)


@dataclasses.dataclass(frozen=True)
class SettingTruth:
    """What each setting, on the slow end, adds to the log of a figure; ``code`` is what the version adds.

    ``crash``: the slow end doesn't start where these are reverted.
    """

    settings: Floats
    code: float = 0.0
    crash: frozenset[int] = frozenset()

    def log(self, point: int) -> float | None:
        """Of a point; None where it doesn't start."""
        end, reverted = end_of(point), settings_of(point)
        if end == LAST and self.crash & reverted:
            return None
        has = [(at in reverted) != (end == LAST) for at in range(len(self.settings))]
        return float(self.settings @ has) + (self.code if end == LAST else 0.0)


def search_settings(
    truth: SettingTruth, scatter: Scatter, settings: SearchSettings, rng: np.random.Generator
) -> tuple[SettingAnswer, int]:
    """The answer, and how many runs were measured."""
    steps: list[Step] = []
    while True:
        move = next_setting_move([True] * len(truth.settings), steps, settings)
        if isinstance(move, SettingAnswer):
            return move, sum(len(step.points) * len(step.blocks) for step in steps)
        if isinstance(move, Begin):
            steps.append(Step(move.kind, move.points, (), move.blocks))
        step = steps[-1]
        measured = []
        for block in range(move.blocks):
            shared = rng.normal(0, scatter.block) + scatter.drift * (10 * len(steps) + block)
            logs = {point: truth.log(point) for point in step.points}
            measured.append({at: log + shared + _run(scatter, rng) for at, log in logs.items() if log is not None})
        planned = max(step.planned, len(step.blocks) + move.blocks)
        steps[-1] = Step(step.kind, step.points, (*step.blocks, *measured), planned)


def plain_bisection(truth: Truth, scatter: Scatter, runs: int, rng: np.random.Generator) -> tuple[int, int]:
    """``git bisect`` by hand with as many runs: the mean of each point beside that of both ends, measured once."""
    last = len(truth.logs) - 1
    each = max(1, runs // (2 + math.ceil(math.log2(last))))

    def measured(at: int) -> float:
        return float(np.mean([truth.logs[at] + rng.normal(0, scatter.block) + _run(scatter, rng) for _ in range(each)]))

    middle, low, high = (measured(0) + measured(last)) / 2, 0, last
    while high - low > 1:
        at = (low + high) // 2
        is_bad = at in truth.crash | truth.unbuilt or measured(at) > middle
        low, high = (low, at) if is_bad else (at, high)
    return low, high


def _run(scatter: Scatter, rng: np.random.Generator) -> float:
    late = rng.exponential(0.08) if scatter.stragglers and rng.random() < scatter.stragglers else 0.0
    return float(rng.normal(0, scatter.run) + late)
