"""Where in an ordered list of points a figure became slower: the next step of a search, from the steps before it.

A step measures one or two new points *and both ends* in the same blocks. A point is like the fast end or like the slow
end by one contrast per block, 2·point − fast − slow in logs, so that drift between steps can't move the answer.

What bounds the error is the last step alone. The search only proposes two neighbours. They are measured in fresh
blocks, whose number is fixed before the first of them, and the change is named only if the two-sided 95 % interval of
their difference (Student's t over blocks) lies beyond the margin. Two neighbours that differ by the margin or less are
so named in at most 2.5 % of searches, whichever way the search came to them: a wrong class on the way costs a search,
never a wrong name. A figure that rises in steps of less than the margin is named nowhere for the same reason.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal

import numpy as np

from gpubench.stats import special
from gpubench.stats.margin import DEFAULT_MARGIN, Margin

NAMED_LEVEL = 0.95
"""Of the interval of the last step."""
CLASS_LEVEL = 0.99
"""Of the intervals by which points get their class, at every look: an error costs blocks, not trust."""
SAME_LEVEL = 0.90
"""Of the interval that has to lie inside the margin where both ends are called equal (two one-sided tests at 5 %)."""
POWER = 0.95
"""That the last step is planned for, with the effect and the noise of the steps before it."""


class PointClass(StrEnum):
    """What a point is like."""

    FAST = "like the fast end"
    SLOW = "like the slow end"
    BETWEEN = "between the ends"
    BEYOND = "beyond the ends"
    UNDECIDED = "undecided"
    FAILED = "failed or skipped"


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """How a search looks, chosen before it begins.

    Args:
        margin: the difference that doesn't matter.
        least: blocks of a step before its figures are looked at.
        more: blocks between two looks.
        least_in_last: blocks of the last step at least.
        most: blocks of a step at most; a point that is undecided then has no class.
        most_in_last: blocks of the last step at most.
    """

    margin: Margin = DEFAULT_MARGIN
    least: int = 3
    more: int = 3
    least_in_last: int = 5
    most: int = 27
    most_in_last: int = 40


@dataclasses.dataclass(frozen=True)
class Step:
    """Points that were measured in the same blocks.

    Args:
        kind: ``ends``: both ends alone; ``search``: new points between them; ``last``: the neighbours, to be named.
        points: positions in the list, ascending, with both ends; or numbers of a search among settings.
        blocks: the log of the figure of each point that was measured, by position; a failed point is missing.
        planned: how many blocks the step has when it is complete; 0 where its new points can't be built.
    """

    kind: Literal["ends", "search", "last"]
    points: tuple[int, ...]
    blocks: tuple[Mapping[int, float], ...]
    planned: int


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A difference of logs: its mean over blocks, and an interval."""

    mean: float
    low: float
    high: float
    blocks: int


@dataclasses.dataclass(frozen=True)
class Begin:
    """Measure these points next, in so many blocks, as a new step."""

    kind: Literal["ends", "search", "last"]
    points: tuple[int, ...]
    blocks: int


@dataclasses.dataclass(frozen=True)
class Extend:
    """Measure so many further blocks of the step before."""

    blocks: int


@dataclasses.dataclass(frozen=True)
class SearchAnswer:
    """What the search found.

    Args:
        word: ``named``: the change lies between ``low`` and ``high``, neighbours or with only skipped points between
            them; ``not confirmed``: fresh blocks didn't show it; ``gradual``: nor did they, and several points lie
            between the ends: the figure rises somewhere from ``low`` to ``high``; ``no effect``: the ends don't differ
            by more than the margin; ``gone``: they did, and don't any more; ``undecided``: the blocks don't show
            whether they differ; ``failed``: an end has no figure in any block of a step.
        low, high: positions; those of the ends without a change.
        effect: of the change in the fresh blocks of ``named`` and ``not confirmed``, else of the ends.
        classes: of every point that was measured.
        skipped: points between ``low`` and ``high`` that failed or stayed undecided.
        others: neighbours in the list of classes that differ too, and were not searched.
    """

    word: Literal["named", "not confirmed", "gradual", "no effect", "gone", "undecided", "failed"]
    low: int
    high: int
    effect: Estimate
    classes: Mapping[int, PointClass]
    skipped: tuple[int, ...] = ()
    others: tuple[tuple[int, int], ...] = ()


def next_move(count: int, steps: Sequence[Step], settings: SearchSettings) -> Begin | Extend | SearchAnswer:
    """What to do after these steps of a search among ``count`` points; the same steps give the same move.

    Raises:
        ValueError: there are fewer than two points.
    """
    if count < 2:
        raise ValueError("a search needs two points at least")
    if not steps:
        return Begin("ends", (0, count - 1), settings.least)
    step = steps[-1]
    if len(step.blocks) < step.planned:
        return Extend(step.planned - len(step.blocks))
    after = {"ends": _after_ends, "search": _after_search, "last": _after_last}[step.kind]
    return after(count, steps, settings)


def classify(count: int, step: Step, sign: int, settings: SearchSettings) -> dict[int, PointClass]:
    """The class of each new point of a step; ``sign`` is −1 where the last point is the faster end."""
    return {point: _class(count - 1, step, point, sign, settings) for point in step.points if 0 < point < count - 1}


def difference(blocks: Iterable[Mapping[int, float]], low: int, high: int, level: float) -> Estimate | None:
    """Of the points ``high`` and ``low`` over the blocks that have both; None where there are fewer than two."""
    return estimate([block[high] - block[low] for block in blocks if low in block and high in block], level)


def look_at_ends(count: int, step: Step, settings: SearchSettings) -> Extend | SearchAnswer | None:
    """What to do after a step of both ends alone; None where they differ by more than the margin, to be searched."""
    effect, margin = _ends(count, step, NAMED_LEVEL), settings.margin.log
    if {0, count - 1} & {*failing_points(step)}:
        return SearchAnswer("failed", 0, count - 1, effect, {})
    if effect.low > margin or effect.high < -margin:
        return None
    if are_equal(step, 0, count - 1, settings):
        return SearchAnswer("no effect", 0, count - 1, effect, {})
    return more_blocks(step, settings) or SearchAnswer("undecided", 0, count - 1, effect, {})


def failing_points(step: Step) -> list[int]:
    """Points without a figure in any of the step's blocks."""
    return [point for point in step.points if not any(point in block for block in step.blocks)]


def are_equal(step: Step, low: int, high: int, settings: SearchSettings) -> bool:
    """Whether two points of a step differ by less than the margin (two one-sided tests)."""
    effect, margin = difference(step.blocks, low, high, SAME_LEVEL), settings.margin.log
    return effect is not None and -margin < effect.low and effect.high < margin


def more_blocks(step: Step, settings: SearchSettings) -> Extend | None:
    """Blocks until the next look at a step; None where it has as many as it may have."""
    return Extend(min(settings.more, settings.most - step.planned)) if step.planned < settings.most else None


def blocks_to_show(effect: float, variance: float, settings: SearchSettings) -> int:
    """Blocks of a last step with which the interval of ``effect`` lies beyond the margin with ``POWER``.

    Args:
        effect: difference of logs.
        variance: of one block's difference.
    """
    for blocks in range(settings.least_in_last, settings.most_in_last):
        quantiles = [special.stdtrit(blocks - 1, share) for share in ((1 + NAMED_LEVEL) / 2, POWER)]
        if (abs(effect) - settings.margin.log) * math.sqrt(blocks) >= sum(quantiles) * math.sqrt(variance):
            return blocks
    return settings.most_in_last


def pooled_variance(groups: Iterable[Sequence[float]]) -> float:
    """Within groups of which one at least has two values."""
    several = [values for values in groups if len(values) > 1]
    squares = sum((len(values) - 1) * float(np.var(values, ddof=1)) for values in several)
    return squares / sum(len(values) - 1 for values in several)


def estimate(values: Sequence[float], level: float) -> Estimate | None:
    """Mean and Student's two-sided interval; None for fewer than two values."""
    if len(values) < 2:
        return None
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(special.stdtrit(len(values) - 1, (1 + level) / 2)) * error
    return Estimate(mean, mean - half, mean + half, len(values))


def _class(last: int, step: Step, point: int, sign: int, settings: SearchSettings) -> PointClass:
    if point in failing_points(step) and (step.blocks or not step.planned):
        return PointClass.FAILED
    complete = [block for block in step.blocks if {0, point, last} <= block.keys()]
    contrast = estimate([sign * (2 * block[point] - block[0] - block[last]) for block in complete], CLASS_LEVEL)
    above_fast = estimate([sign * (block[point] - block[0]) for block in complete], CLASS_LEVEL)
    below_slow = estimate([sign * (block[last] - block[point]) for block in complete], CLASS_LEVEL)
    if contrast is None or above_fast is None or below_slow is None:
        return PointClass.UNDECIDED
    margin = settings.margin.log
    if below_slow.high < -margin or above_fast.high < -margin:
        return PointClass.BEYOND
    if above_fast.low > margin and below_slow.low > margin:
        return PointClass.BETWEEN
    if contrast.low > 0:
        return PointClass.SLOW
    return PointClass.FAST if contrast.high < 0 else PointClass.UNDECIDED


def _after_ends(count: int, steps: Sequence[Step], settings: SearchSettings) -> Begin | Extend | SearchAnswer:
    return look_at_ends(count, steps[-1], settings) or _next_step(count, steps, settings)


def _after_search(count: int, steps: Sequence[Step], settings: SearchSettings) -> Begin | Extend | SearchAnswer:
    step = steps[-1]
    classes = classify(count, step, _sign(count, steps), settings)
    if step.planned and {0, count - 1} & {*failing_points(step)}:
        effect = _ends(count, steps[0], NAMED_LEVEL)
        return SearchAnswer("failed", 0, count - 1, effect, _classes(count, steps, settings))
    if are_equal(step, 0, count - 1, settings):
        return SearchAnswer("gone", 0, count - 1, _ends(count, step, SAME_LEVEL), _classes(count, steps, settings))
    more = more_blocks(step, settings) if PointClass.UNDECIDED in classes.values() else None
    return more or _next_step(count, steps, settings)


def _next_step(count: int, steps: Sequence[Step], settings: SearchSettings) -> Begin:
    """Of the first change among the points with a class: one or two new points inside it, or the last step."""
    classes = _classes(count, steps, settings)
    low, high = _changes(count, classes)[0]
    inside = [point for point in range(low + 1, high) if point not in classes]
    if not inside:
        points = tuple(sorted({0, low, high, count - 1}))
        return Begin("last", points, _blocks_of_last(count, steps, (low, high), settings))
    new = inside if len(inside) <= 2 else [inside[len(inside) // 3], inside[2 * len(inside) // 3]]
    return Begin("search", (0, *new, count - 1), settings.least)


def _after_last(count: int, steps: Sequence[Step], settings: SearchSettings) -> SearchAnswer:
    step, classes = steps[-1], _classes(count, steps, settings)
    (low, high), *others = _changes(count, classes)
    sign, margin = _sign(count, steps), settings.margin.log
    effect = difference(step.blocks, low, high, NAMED_LEVEL) or Estimate(0.0, -math.inf, math.inf, 0)
    shown = effect.low > margin if sign > 0 else effect.high < -margin
    if not shown and sum(word is PointClass.BETWEEN for word in classes.values()) > 1:
        return SearchAnswer("gradual", low, max([high, *(last for _, last in others)]), effect, classes)
    skipped = tuple(range(low + 1, high))
    return SearchAnswer("named" if shown else "not confirmed", low, high, effect, classes, skipped, tuple(others))


def _classes(count: int, steps: Sequence[Step], settings: SearchSettings) -> dict[int, PointClass]:
    sign = _sign(count, steps)
    return {
        point: word
        for step in steps
        if step.kind == "search"
        for point, word in classify(count, step, sign, settings).items()
    }


def _changes(count: int, classes: Mapping[int, PointClass]) -> list[tuple[int, int]]:
    """Neighbours among the ends and the points with a class that differ, from the first; never empty."""
    decided = {point: word for point, word in classes.items() if word not in (PointClass.UNDECIDED, PointClass.FAILED)}
    decided |= {0: PointClass.FAST, count - 1: PointClass.SLOW}
    order = sorted(decided)
    return [
        (low, high)
        for low, high in itertools.pairwise(order)
        if decided[low] != decided[high] or decided[low] in (PointClass.BETWEEN, PointClass.BEYOND)
    ]


def _blocks_of_last(count: int, steps: Sequence[Step], neighbours: tuple[int, int], settings: SearchSettings) -> int:
    """Blocks with which the interval lies beyond the margin with ``POWER``, by what the steps before showed."""
    variance = pooled_variance(_ends_of(count, step) for step in steps)
    rise = _rise(count, steps, neighbours, _classes(count, steps, settings))
    return blocks_to_show(rise, variance, settings)


def _rise(count: int, steps: Sequence[Step], neighbours: tuple[int, int], classes: Mapping[int, PointClass]) -> float:
    """How far the second neighbour lies above the first: points of a class are taken for equal, which scatters less."""
    # The first step is the one that had to show an effect: with it, the effect would look larger than it is.
    ends = [value for step in steps[1:] for value in _ends_of(count, step)] or _ends_of(count, steps[0])
    heights = {PointClass.FAST: 0.0, PointClass.SLOW: float(np.mean(ends))}
    rises = []
    for point in neighbours:
        word = PointClass.FAST if point == 0 else PointClass.SLOW if point == count - 1 else classes[point]
        above = [block[point] - block[0] for step in steps for block in step.blocks if {0, point} <= block.keys()]
        rises.append(heights[word] if word in heights else float(np.mean(above)))
    return rises[1] - rises[0]


def _sign(count: int, steps: Sequence[Step]) -> int:
    return 1 if np.mean(_ends_of(count, steps[0])) >= 0 else -1


def _ends(count: int, step: Step, level: float) -> Estimate:
    return estimate(_ends_of(count, step), level) or Estimate(0.0, -math.inf, math.inf, 0)


def _ends_of(count: int, step: Step) -> list[float]:
    return [block[count - 1] - block[0] for block in step.blocks if {0, count - 1} <= block.keys()]
