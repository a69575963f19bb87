"""Where in an ordered list of points a figure became slower: the next step of a search, from the steps before it.

A step measures one or two new points *and both ends* in the same blocks. A point is like the fast end or like the slow
end by one contrast per block, 2·point − fast − slow in logs, so that drift between steps can't move the answer.

What bounds the error are the last steps alone. The search only proposes two neighbours. They are measured in fresh
blocks, whose number is fixed before the first of them, and the change is named only if the two-sided 95 % interval of
their difference (Student's t over blocks) lies beyond the margin. Two neighbours that differ by the margin or less are
so named in at most 2.5 % of last steps, whichever way the search came to them: a wrong class on the way costs a search,
never a wrong name. A figure that rises in steps of less than the margin is named nowhere for the same reason. Where the
classes change twice, the second place is searched after the first: two last steps at most, so 5 % of searches.
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
MOST_CONFIRMED = 2
"""Last steps of a search: each names a wrong change in at most 2.5 % of searches."""


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


UNKNOWN = Estimate(0.0, -math.inf, math.inf, 0)
"""Of points that fewer than two blocks have both."""


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
class Confirmation:
    """Two points that were measured in a last step.

    Args:
        low, high: positions; neighbours, or with only skipped points between them.
        effect: high − low in the fresh blocks.
        skipped: points between them that failed or stayed undecided.
        is_shown: the interval of ``effect`` lies beyond the margin.
    """

    low: int
    high: int
    effect: Estimate
    skipped: tuple[int, ...]
    is_shown: bool


@dataclasses.dataclass(frozen=True)
class SearchAnswer:
    """What the search found.

    Args:
        word: ``named``: a change of the ends' direction was shown; ``not confirmed``: fresh blocks showed none;
            ``gradual``: nor did they, and several points lie between the ends: the figure rises somewhere from ``low``
            to ``high``; ``no effect``: the ends don't differ by more than the margin; ``gone``: they did, and don't any
            more; ``undecided``: the blocks don't show whether they differ; ``failed``: an end has no figure in any
            block of a step.
        low, high: positions; of the first change that is named, or that was not confirmed; else those of the ends.
        effect: of that change in its fresh blocks, else of the ends.
        classes: of every point that was measured.
        changes: of every last step, in the order of the list.
        others: neighbours in the list of classes that differ too, and were not searched.
    """

    word: Literal["named", "not confirmed", "gradual", "no effect", "gone", "undecided", "failed"]
    low: int
    high: int
    effect: Estimate
    classes: Mapping[int, PointClass]
    changes: tuple[Confirmation, ...] = ()
    others: tuple[tuple[int, int], ...] = ()

    @property
    def shown(self) -> list[Confirmation]:
        """The changes that fresh blocks showed."""
        return [change for change in self.changes if change.is_shown]


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
    if step.kind == "ends" and (look := look_at_ends(count, step, settings)):
        return look
    search = _Search(count, steps, settings)
    if step.kind == "ends":
        return search.next_step()
    return search.look() if step.kind == "search" else search.conclude()


def further_steps(count: int) -> int:
    """Most steps after that of the ends, of a search among ``count`` points of which one changed and none fails."""
    between, steps = max(count - 2, 0), 1
    while between > 0:
        first, second = between // 3, 2 * between // 3
        between = max(first, second - first - 1, between - second - 1) if between > 2 else 0
        steps += 1
    return steps


def further_runs(count: int, settings: SearchSettings) -> int:
    """How many runs these steps take where the first look at each decides: of both ends and two points between them."""
    return 4 * settings.least * (further_steps(count) - 1) + 4 * settings.least_in_last


def answer_so_far(count: int, steps: Sequence[Step], settings: SearchSettings) -> SearchAnswer | None:
    """The answer of a search that stops here, where a change is named already; None: none is."""
    has_last = any(step.kind == "last" for step in steps)
    return _Search(count, steps, settings).named_so_far() if has_last else None


def classify(count: int, step: Step, sign: int, settings: SearchSettings) -> dict[int, PointClass]:
    """The class of each new point of a step; ``sign`` is −1 where the last point is the faster end."""
    return {point: _class(count - 1, step, point, sign, settings) for point in step.points if 0 < point < count - 1}


def difference(blocks: Iterable[Mapping[int, float]], low: int, high: int, level: float) -> Estimate | None:
    """Of the points ``high`` and ``low`` over the blocks that have both; None where there are fewer than two."""
    return estimate([block[high] - block[low] for block in blocks if low in block and high in block], level)


def look_at_ends(count: int, step: Step, settings: SearchSettings) -> Extend | SearchAnswer | None:
    """What to do after a step of both ends alone; None where they differ by more than the margin, to be searched."""
    effect = _ends(count, step, NAMED_LEVEL)
    if {0, count - 1} & {*failing_points(step)}:
        return SearchAnswer("failed", 0, count - 1, effect, {})
    if settings.margin.is_slower(effect.low) or settings.margin.is_faster(effect.high):
        return None
    if are_equal(step, 0, count - 1, settings):
        return SearchAnswer("no effect", 0, count - 1, _ends(count, step, SAME_LEVEL), {})
    return more_blocks(step, settings) or SearchAnswer("undecided", 0, count - 1, effect, {})


def failing_points(step: Step) -> list[int]:
    """Points without a figure in any of the step's blocks."""
    return [point for point in step.points if not any(point in block for block in step.blocks)]


def are_equal(step: Step, low: int, high: int, settings: SearchSettings) -> bool:
    """Whether two points of a step differ by less than the margin (two one-sided tests)."""
    effect = difference(step.blocks, low, high, SAME_LEVEL)
    return effect is not None and settings.margin.contains(effect.low, effect.high)


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
    if settings.margin.is_faster(min(below_slow.high, above_fast.high)):
        return PointClass.BEYOND
    if settings.margin.is_slower(min(above_fast.low, below_slow.low)):
        return PointClass.BETWEEN
    first_word, last_word = _words_of_ends(sign)
    if contrast.low > 0:
        return last_word
    return first_word if contrast.high < 0 else PointClass.UNDECIDED


def _words_of_ends(sign: int) -> tuple[PointClass, PointClass]:
    """What the first and the last point are called: the last may be the faster one."""
    return (PointClass.FAST, PointClass.SLOW) if sign > 0 else (PointClass.SLOW, PointClass.FAST)


class _Search:
    """What the steps so far say; the first of them, that of the ends, is complete."""

    def __init__(self, count: int, steps: Sequence[Step], settings: SearchSettings) -> None:
        self._last, self._steps, self._settings = count - 1, steps, settings
        self._searches = [step for step in steps if step.kind == "search"]
        self._confirmations = [step for step in steps if step.kind == "last" and len(step.blocks) >= step.planned]
        self._sign = 1 if np.mean(_ends_of(count, steps[0])) >= 0 else -1
        self._classes = {
            point: word
            for step in self._searches
            for point, word in classify(count, step, self._sign, settings).items()
        }
        first_word, last_word = _words_of_ends(self._sign)
        self._decided = {0: first_word, self._last: last_word}
        without = (PointClass.UNDECIDED, PointClass.FAILED)
        self._decided |= {point: word for point, word in self._classes.items() if word not in without}
        # The first step is the one that had to show an effect: with it, the effect would look larger than it is.
        ends = [value for step in self._searches for value in _ends_of(count, step)] or _ends_of(count, steps[0])
        self._heights = {first_word: 0.0, last_word: float(np.mean(ends))}

    def look(self) -> Begin | Extend | SearchAnswer:
        """After a step of the search."""
        step, count = self._steps[-1], self._last + 1
        if step.planned and {0, self._last} & {*failing_points(step)}:
            return self._without_change("failed", _ends(count, self._steps[0], NAMED_LEVEL))
        if are_equal(step, 0, self._last, self._settings):
            return self._without_change("gone", _ends(count, step, SAME_LEVEL))
        is_open = any(self._classes[point] is PointClass.UNDECIDED for point in step.points if point in self._classes)
        return (more_blocks(step, self._settings) if is_open else None) or self.next_step()

    def next_step(self) -> Begin:
        """One or two new points inside the place that is searched, or its last step."""
        low, high = self._places()[len(self._confirmations)]
        inside = [point for point in range(low + 1, high) if point not in self._classes]
        if not inside:
            variance = pooled_variance(_ends_of(self._last + 1, step) for step in self._steps)
            blocks = blocks_to_show(self._rise((low, high)), variance, self._settings)
            return Begin("last", tuple(sorted({0, low, high, self._last})), blocks)
        new = inside if len(inside) <= 2 else [inside[len(inside) // 3], inside[2 * len(inside) // 3]]
        return Begin("search", (0, *new, self._last), self._settings.least)

    def conclude(self) -> Begin | SearchAnswer:
        """After a last step: the second place, or the answer."""
        is_complete = len(self._confirmations) == min(MOST_CONFIRMED, len(self._pairs()))
        return self._answer() if is_complete else self.next_step()

    def named_so_far(self) -> SearchAnswer | None:
        """The answer where a change is named."""
        answer = self._answer() if self._confirmations else None
        return answer if answer is not None and answer.word == "named" else None

    def _without_change(self, word: Literal["failed", "gone"], effect: Estimate) -> SearchAnswer:
        return self.named_so_far() or SearchAnswer(word, 0, self._last, effect, self._classes)

    def _answer(self) -> SearchAnswer:
        """By the last steps so far, of which there is one at least."""
        places, margin = self._places()[: len(self._confirmations)], self._settings.margin
        changes = []
        for (low, high), step in zip(places, self._confirmations, strict=True):
            effect = difference(step.blocks, low, high, NAMED_LEVEL) or UNKNOWN
            is_shown = margin.is_slower(effect.low) or margin.is_faster(effect.high)
            changes.append(Confirmation(low, high, effect, tuple(range(low + 1, high)), is_shown))
        changes.sort(key=lambda change: change.low)
        others = tuple(pair for pair in self._pairs() if pair not in places)
        named = [change for change in changes if change.is_shown and self._sign * change.effect.mean > 0]
        if not named and sum(word is PointClass.BETWEEN for word in self._classes.values()) > 1:
            low, high = changes[0].low, max(high for _, high in self._pairs())
            effect = _ends(self._last + 1, self._steps[0], NAMED_LEVEL)
            return SearchAnswer("gradual", low, high, effect, self._classes, tuple(changes))
        first, *_ = named or changes
        word: Literal["named", "not confirmed"] = "named" if named else "not confirmed"
        return SearchAnswer(word, first.low, first.high, first.effect, self._classes, tuple(changes), others)

    def _pairs(self) -> list[tuple[int, int]]:
        """Neighbours among the points with a class that differ, from the first; never empty."""
        return [
            (low, high)
            for low, high in itertools.pairwise(sorted(self._decided))
            if self._decided[low] != self._decided[high] or self._are_apart(low, high)
        ]

    def _are_apart(self, low: int, high: int) -> bool:
        """Whether two points that are both between the ends, or both beyond them, differ nevertheless."""
        if self._decided[low] in self._heights:
            return False
        below, above = sorted((self._above(low), self._above(high)), key=lambda estimate: estimate.mean)
        return below.high < above.low

    def _places(self) -> list[tuple[int, int]]:
        """Which of them are searched, in this order: the first one, then that of the largest difference.

        No last step enters that choice: the places of those that were are chosen again.
        """
        first, *others = self._pairs()
        return [first, *([max(others, key=lambda pair: abs(self._rise(pair)))] if others else [])]

    def _rise(self, pair: tuple[int, int]) -> float:
        """How far its second point lies above the first: points of a class count as equal, which scatters less."""
        low, high = map(self._height, pair)
        return high - low

    def _height(self, point: int) -> float:
        word = self._decided[point]
        return self._heights[word] if word in self._heights else self._above(point).mean

    def _above(self, point: int) -> Estimate:
        """How far a point with a class lies above the first one."""
        blocks = [block for step in self._searches for block in step.blocks]
        above = difference(blocks, 0, point, CLASS_LEVEL)
        assert above is not None  # a class needs two blocks
        return above


def _ends(count: int, step: Step, level: float) -> Estimate:
    return estimate(_ends_of(count, step), level) or UNKNOWN


def _ends_of(count: int, step: Step) -> list[float]:
    return [block[count - 1] - block[0] for block in step.blocks if {0, count - 1} <= block.keys()]
