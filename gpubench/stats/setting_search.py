"""Which settings made a figure slower, of those in which two ends differ: the next step, from the steps before it.

A point is an end with some settings as the other end has them. A first step measures both ends; a second one the slow
end with all settings *reverted*, that is as on the fast side. Where that is as slow, it is no setting. Otherwise
``ddmin`` looks for a smallest subset that restores as much as all together. A subset does if it is nearer to all
reverted than to the slow end, by one contrast per block, 2·point − all reverted − slow in logs, so that drift between
steps can't move it, and lies within the margin of all reverted; it doesn't if it is apart from both by more than the
margin. What fails to start, or stays undecided, is unresolved.

What bounds the error is the last step alone, in fresh blocks, whose number is fixed before the first of them. A name is
*wrong* if one of its settings, where the others are reverted, doesn't change the slow end's figure by more than the
margin. A single setting is named if the 95 % interval of slow end − slow end with it reverted lies beyond the margin;
of two or three, each has to show that in a second fresh step, where it alone isn't reverted. A wrong name needs the
interval of a setting that doesn't matter beyond the margin, which happens in at most 2.5 % of searches, whichever way
the search came to it. That there is no other such set, and that nothing outside of it matters, is not claimed; what is
missing to the whole effect is printed with its interval.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from gpubench.stats.bisection import (
    CLASS_LEVEL,
    NAMED_LEVEL,
    SAME_LEVEL,
    UNKNOWN,
    Begin,
    Estimate,
    Extend,
    SearchSettings,
    Step,
    are_equal,
    blocks_to_show,
    difference,
    estimate,
    failing_points,
    look_at_ends,
    more_blocks,
    pooled_variance,
)
from gpubench.stats.delta_debugging import Subset, Untested, ddmin
from gpubench.stats.ratio import Interval, ratio_of_means

FIRST, LAST = 0, 1
MOST_NAMED = 3
MOST_TESTED = 40
"""Subsets: one setting of a hundred needs less than half of them, two of twenty about as many."""
BEFORE_IT_FAILS = 2
"""Blocks in which all reverted have to fail, before what keeps them from starting is searched."""
TRIAL = 1
"""Blocks of a step before the others: a point that fails in it is not run again, which can take minutes each time."""


def point_of(end: int, settings: Iterable[int] = ()) -> int:
    """The number of an end with these settings as the other end has them."""
    return end + 2 * sum(1 << setting for setting in settings)


def end_of(point: int) -> int:
    """FIRST or LAST."""
    return point & 1


def settings_of(point: int) -> Subset:
    """The settings that are as on the other side."""
    return frozenset(setting for setting in range((point >> 1).bit_length()) if point >> 1 + setting & 1)


Word = Literal[
    "named",
    "none of them",
    "several",
    "not narrowed",
    "not confirmed",
    "no effect",
    "gone",
    "restored no more",
    "undecided",
    "failed",
    "gradual",
]


@dataclasses.dataclass(frozen=True)
class SettingAnswer:
    """What a search among settings found.

    Args:
        word: ``named``; ``none of them``: with all reverted the slow end is as slow; ``several``: the smallest subset
            that restores as much as all has more than three; ``not confirmed``: fresh blocks didn't show it;
            ``not narrowed``: no smallest subset after MOST_TESTED; ``restored no more``: all reverted did restore, and
            in a later step they didn't; ``no effect``, ``gone``, ``undecided`` and ``failed`` as in a search among
            points.
        slow: FIRST or LAST.
        effect: slow − fast end, in the last step that has both.
        chosen: the settings of the smallest subset, if the search came so far.
        gain: slow end − slow end with those reverted; with all reverted where none is chosen.
        rest: slow end with those reverted − fast end.
        applied: fast end with those as on the slow side − fast end; None where that can't be set or wasn't measured.
        makes_no_difference: ``applied`` is equivalent to 0.
        is_same_on_both: ``applied`` is equivalent to ``gain``.
        share: of the gain in the effect.
        excluded: settings that were left out: with them reverted, the slow end gives no figure.
    """

    word: Word
    slow: int
    effect: Estimate
    chosen: tuple[int, ...] = ()
    gain: Estimate | None = None
    rest: Estimate | None = None
    applied: Estimate | None = None
    makes_no_difference: bool = False
    is_same_on_both: bool = False
    share: Interval | None = None
    excluded: tuple[int, ...] = ()


def slow_end(step: Step) -> int:
    """The slower end by a step of both."""
    effect = difference(step.blocks, FIRST, LAST, NAMED_LEVEL)
    return FIRST if effect is not None and effect.mean < 0 else LAST


def next_setting_move(
    applicable: Sequence[bool], steps: Sequence[Step], settings: SearchSettings
) -> Begin | Extend | SettingAnswer:
    """What to do after these steps; the same steps give the same move.

    Args:
        applicable: of each setting, the likeliest first: whether the fast end can have it as the slow end does.
    """
    if not steps:
        return Begin("ends", (FIRST, LAST), settings.least)
    step = steps[-1]
    if len(step.blocks) < step.planned:
        return Extend(step.planned - len(step.blocks))
    search = _Search(applicable, steps, settings)
    if step.kind == "ends":
        look = look_at_ends(2, step, settings)
        if look is not None:
            return look if isinstance(look, Extend) else search.answer(look.word)
    if step.kind == "search" and step.planned and (move := search.repeat(step) or search.look(step)):
        return move
    return search.next_tests() if step.kind != "last" else search.confirm()


class _Search:
    def __init__(self, applicable: Sequence[bool], steps: Sequence[Step], settings: SearchSettings) -> None:
        self._applicable, self._steps, self._settings = applicable, steps, settings
        self._slow = slow_end(steps[0])
        self._fast = FIRST + LAST - self._slow
        self._left, self._unstarted = self._startable()
        self._whole = point_of(self._slow, self._left)
        self._outcomes = dict(self._tested())

    def repeat(self, step: Step) -> Extend | SettingAnswer | None:
        """After a step of the search: further blocks before anybody looks at it; None where it has enough.

        An end, or all reverted once they have run, is measured again where it failed: that isn't for the settings to
        explain. All reverted fail for certain after two blocks only.
        """
        failing, few = {*failing_points(step)}, step.planned < self._settings.least
        if failing & {FIRST, LAST}:
            return Extend(self._settings.least - step.planned) if few else self.answer("failed")
        if self._whole in failing and self._has_run(self._whole):
            return Extend(self._settings.least - step.planned) if few else self.answer("undecided")
        if self._whole in failing and self._left and self._tried(self._whole) < BEFORE_IT_FAILS:
            return Extend(BEFORE_IT_FAILS - self._tried(self._whole))
        return Extend(self._settings.least - step.planned) if few and not failing else None

    def look(self, step: Step) -> Extend | SettingAnswer | None:
        """After a step of the search: the ends are alike now, or all reverted restore nothing; None to go on."""
        if {FIRST, LAST} <= {*step.points} and are_equal(step, FIRST, LAST, self._settings):
            return self.answer("gone")
        if self._unstarted or not self._left or self._whole not in step.points:
            return None
        gains = [difference(step.blocks, self._whole, self._slow, level) for level in (NAMED_LEVEL, SAME_LEVEL)]
        if self._fast not in step.points:
            return self.answer("restored no more") if are_equal(step, self._whole, self._slow, self._settings) else None
        if gains[1] is not None and not self._settings.margin.is_slower(gains[1].high):
            return self.answer("none of them")
        if gains[0] is None or not self._settings.margin.is_slower(gains[0].low):
            return more_blocks(step, self._settings) or self.answer("undecided")
        return None

    def next_tests(self) -> Begin | Extend | SettingAnswer:
        """The next subsets, or the last step."""
        if not self._left:
            return self.answer("undecided" if self._applicable else "none of them")
        if self._unstarted:
            return self._begin([self._slow, *self._unstarted])
        if not any({self._fast, self._whole} <= {*step.points} for step in self._steps):
            return self._begin([self._fast, self._slow, self._whole])
        chosen = self._chosen()
        if isinstance(chosen, Untested):
            return self._test([point_of(self._slow, subset) for subset in chosen.subsets[:2]])
        if len(chosen) > MOST_NAMED:
            return self.answer("several")
        can_apply = all(self._applicable[setting] for setting in chosen)
        ends = [self._fast, *([point_of(self._fast, chosen)] if can_apply else []), self._slow]
        return self._begin_last([*ends, point_of(self._slow, chosen)], [(point_of(self._slow, chosen), self._slow)])

    def _test(self, points: Sequence[int]) -> Begin | Extend | SettingAnswer:
        if len(self._outcomes) >= MOST_TESTED:
            return self.answer("not narrowed")
        last = self._steps[-1]
        is_open = points[0] in last.points and not failing_points(last)
        return (more_blocks(last, self._settings) if is_open else None) or self._begin(
            [self._slow, self._whole, *points]
        )

    def confirm(self) -> Begin | SettingAnswer:
        """After a last step: each of several settings in a step of its own, then the answer."""
        chosen = self._chosen()
        if isinstance(chosen, Untested):  # no step that was measured by these moves comes here
            return self.answer("undecided")
        whole = point_of(self._slow, chosen)
        pairs = [(whole, point_of(self._slow, chosen - {setting})) for setting in sorted(chosen)]
        lasts = [step for step in self._steps if step.kind == "last"]
        is_shown = self._is_beyond(lasts[0], whole, self._slow)
        if is_shown and len(chosen) > 1 and len(lasts) == 1:
            return self._begin_last([whole, *(point for _, point in pairs)], pairs)
        is_shown = is_shown and all(self._is_beyond(lasts[-1], low, high) for low, high in pairs)
        return self.answer("named" if is_shown else "not confirmed")

    def answer(self, word: Word) -> SettingAnswer:
        """With the figures of the last step that has them; each word with the interval that decided it."""
        level = SAME_LEVEL if word in ("no effect", "gone") else NAMED_LEVEL
        chosen = self._chosen() if word in ("named", "not confirmed", "several") else None
        subset = chosen if isinstance(chosen, frozenset) else frozenset(self._left)
        slow, reverted, applied = self._slow, point_of(self._slow, subset), point_of(self._fast, subset)
        step = self._last_with(self._fast, slow) or self._steps[0]
        of_gain = self._last_with(reverted, slow) if subset else None
        blocks = [block for block in step.blocks if {FIRST, LAST, reverted} <= block.keys()] if subset else []
        gains, effects = ([block[slow] - block[faster] for block in blocks] for faster in (reverted, self._fast))
        extra = [
            block[applied] - block[self._fast] - gain
            for block, gain in zip(blocks, gains, strict=True)
            if applied in block
        ]
        return SettingAnswer(
            word=word,
            slow=slow,
            effect=difference(step.blocks, self._fast, slow, level) or UNKNOWN,
            chosen=tuple(sorted(chosen)) if isinstance(chosen, frozenset) else (),
            gain=difference(of_gain.blocks, reverted, slow, NAMED_LEVEL) if of_gain else None,
            rest=difference(blocks, self._fast, reverted, NAMED_LEVEL),
            applied=difference(step.blocks, self._fast, applied, NAMED_LEVEL) if subset else None,
            makes_no_difference=bool(subset) and are_equal(step, self._fast, applied, self._settings),
            is_same_on_both=_is_equivalent_to_0(extra, self._settings),
            share=ratio_of_means(gains, effects, NAMED_LEVEL),
            excluded=tuple(sorted({*range(len(self._applicable))} - {*self._left})),
        )

    def _last_with(self, low: int, high: int) -> Step | None:
        steps = reversed(self._steps)
        return next((step for step in steps if difference(step.blocks, low, high, NAMED_LEVEL) is not None), None)

    def _has_run(self, point: int) -> bool:
        return any(point in block for step in self._steps for block in step.blocks)

    def _tried(self, point: int) -> int:
        return sum(len(step.blocks) for step in self._steps if point in step.points)

    def _chosen(self) -> Subset | Untested:
        return ddmin(self._left, self._outcomes)

    def _startable(self) -> tuple[list[int], list[int]]:
        """The settings with which the slow end may start, and points that have to be tried to tell.

        What keeps it from starting is a smallest subset too: ``ddmin`` finds it, and it is left out.
        """
        left = list(range(len(self._applicable)))
        fails = {
            settings_of(point): not self._has_run(point)
            for step in self._steps
            for point in step.points
            if step.kind == "search" and end_of(point) == self._slow and len(step.blocks) == step.planned
        }
        while left and fails.get(frozenset(left)) and self._tried(point_of(self._slow, left)) >= BEFORE_IT_FAILS:
            culprit = ddmin(left, fails)
            if isinstance(culprit, Untested):
                return left, [point_of(self._slow, subset) for subset in culprit.subsets[:2]]
            left = [setting for setting in left if setting not in culprit]
        return left, []

    def _tested(self) -> Iterable[tuple[Subset, bool | None]]:
        """What is decided of the subsets that were measured beside the slow end and all reverted."""
        for step in self._steps:
            for point in step.points if step.kind == "search" and self._whole in step.points else ():
                if end_of(point) != self._slow or point in (self._slow, self._whole):
                    continue
                restores = _restores(step, self._whole, point, self._slow, self._settings)
                if restores is not None or point in failing_points(step) or more_blocks(step, self._settings) is None:
                    yield settings_of(point), restores

    def _is_beyond(self, step: Step, low: int, high: int) -> bool:
        effect = difference(step.blocks, low, high, NAMED_LEVEL)
        return effect is not None and self._settings.margin.is_slower(effect.low)

    def _begin(self, points: Sequence[int]) -> Begin:
        return Begin("search", tuple(points), TRIAL)

    def _begin_last(self, points: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Begin:
        """With blocks for the smallest difference of ``pairs``, as the steps of the search showed them."""
        effects, noise = [], []
        for low, high in pairs:
            is_measured = any({low, high} <= {*step.points} for step in self._steps)
            values = [self._differences(step, low if is_measured else self._whole, high) for step in self._steps]
            effects.append([value for group in values for value in group])
            noise += values
        variance = pooled_variance(
            [*noise, *(self._differences(step, self._whole, self._slow) for step in self._steps)]
        )
        # A standard error less: what a search chose, by few blocks, tends to be less than it looked.
        least = min(float(np.mean(effect)) - math.sqrt(variance / len(effect)) if effect else 0.0 for effect in effects)
        return Begin("last", tuple(points), blocks_to_show(max(least, 0.0), variance, self._settings))

    @staticmethod
    def _differences(step: Step, low: int, high: int) -> list[float]:
        return [block[high] - block[low] for block in step.blocks if {low, high} <= block.keys()]


def _is_equivalent_to_0(values: Sequence[float], settings: SearchSettings) -> bool:
    interval = estimate(values, SAME_LEVEL)
    return interval is not None and settings.margin.contains(interval.low, interval.high)


def _restores(step: Step, whole: int, point: int, slow: int, settings: SearchSettings) -> bool | None:
    """Whether a point is like all reverted; not where it is apart from both, as from the slow end. None: undecided."""
    complete = [block for block in step.blocks if {slow, whole, point} <= block.keys()]
    contrast = estimate([2 * block[point] - block[whole] - block[slow] for block in complete], CLASS_LEVEL)
    above, below = (difference(complete, *pair, CLASS_LEVEL) for pair in ((whole, point), (point, slow)))
    if contrast is None or above is None or below is None:
        return None
    if settings.margin.is_slower(min(above.low, below.low)) or contrast.low > 0:
        return False
    return True if contrast.high < 0 and not settings.margin.is_slower(above.mean) else None
