"""The part of an axis of effects that pictures show: the chart of effects, and plots in the terminal."""

from collections.abc import Sequence

from gpubench.stats.verdict import Verdict

_BEYOND = 4.0
"""Times the largest effect: the part of an interval that lies farther away is cut, and is in the table."""


def effect_range(verdicts: Sequence[Verdict], margin: float) -> tuple[float, float]:
    """Space for effects, their intervals and the margin, as ratios minus one; one very wide interval hides no others.

    An effect without an interval doesn't extend the space if others have intervals.
    """
    shown = [(verdict.effect, *verdict.shown) for verdict in verdicts if verdict.effect is not None]
    rows = [row for row in shown if row[1] is not None] or shown
    bound = _BEYOND * max([margin, *(abs(row[0]) for row in rows)])
    ends = [end for row in rows for end in row if end is not None]
    return max(min([-1.5 * margin, *ends]), -bound), min(max([1.5 * margin, *ends]), bound)
