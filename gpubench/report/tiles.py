"""Tiles: one for each workload, with both sides in seconds, the change, and where it lies beside the margin."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import markupsafe

from gpubench.report import labels
from gpubench.report.inputs import ReportInputs
from gpubench.report.verdicts import anchor as anchor_of
from gpubench.stats.verdict import Verdict

MOST = 12
"""Comparisons that have room on a first screen; the table has the others."""
_CLIP = 4.0
_ORDER = ("broken", "regression", "improvement", "inconclusive", "equivalent")


@dataclasses.dataclass(frozen=True)
class Tile:
    """A workload with a line per comparison."""

    name: str
    anchor: str
    lines: list[TileLine]


@dataclasses.dataclass(frozen=True)
class TileLine:
    """One comparison. ``candidate`` is empty where a page has one only; ``picture`` is SVG."""

    candidate: str
    verdict: str
    word: str
    mark: str
    before: str
    after: str
    effect: str
    interval: str
    picture: markupsafe.Markup


def tiles(inputs: ReportInputs, names: Sequence[str]) -> tuple[list[Tile], int]:
    """One tile per workload and size, in the order of the plan; and how many are left out.

    If there are more than ``MOST`` comparisons, the most important ones are kept: broken or different ones first.
    """
    pairs = {labels.pair(one) for one in inputs.verdicts}
    named = labels.pair if len(labels.baselines(inputs.verdicts)) > 1 else lambda one: str(one.candidate)
    margin, bound = inputs.settings.margin, _bound(inputs.verdicts, inputs.settings.margin)
    found: dict[str, Tile] = {}
    weights: dict[str, tuple[int, float]] = {}
    for one, pair, name in zip(inputs.verdicts, inputs.seconds, names, strict=True):
        anchor, (before, after) = anchor_of(one), map(labels.seconds, pair) if pair else ("", "")
        line = TileLine(
            candidate=named(one) if len(pairs) > 1 else "",
            verdict=one.verdict,
            word=one.leaning.partition(",")[0] or one.verdict,
            mark=labels.MARKS.get(one.verdict, ""),
            before=before,
            after=after,
            effect=labels.effect(one),
            interval=labels.interval(one),
            picture=picture(one, margin, bound),
        )
        found.setdefault(anchor, Tile(name, anchor, [])).lines.append(line)
        weight = (_ORDER.index(one.verdict) - bool(one.leaning), -abs(one.effect or 0.0))
        weights[anchor] = min(weights.get(anchor, weight), weight)
    kept = sorted(weights, key=lambda anchor: weights[anchor])[: MOST // max(len(pairs), 1) or 1]
    return [tile for anchor, tile in found.items() if anchor in kept], len(found) - len(kept)


def picture(one: Verdict, margin: float, bound: float) -> markupsafe.Markup:
    """Dot and interval over the band of the margin, slower to the right; from ``-bound`` to ``bound``."""

    def at(ratio: float) -> float:
        """Percent of the width: almost even within the margin, logarithmic beyond."""
        part = math.log1p(min(abs(ratio), bound) / margin) / math.log1p(bound / margin)
        return round(50 + math.copysign(48 * part, ratio), 1)

    low, high = one.shown
    marks = f'<rect class="margin" x="{at(-margin)}%" width="{at(margin) - at(-margin):.1f}%" height="100%"/>'
    marks += '<line class="zero" x1="50%" x2="50%" y2="100%"/>'
    if low is not None and high is not None:
        marks += f'<line class="interval" x1="{at(low)}%" x2="{at(high)}%" y1="50%" y2="50%"/>'
    if one.effect is not None:
        marks += f'<circle cx="{at(one.effect)}%" cy="50%" r="5"/>'
    return markupsafe.Markup(  # noqa: S704 - numbers only
        f'<svg class="dot {one.verdict}" aria-hidden="true" width="100%" height="24">{marks}</svg>'
    )


def _bound(verdicts: Sequence[Verdict], margin: float) -> float:
    """Room for all effects, and for their intervals if these don't compress the others."""
    effects = [abs(one.effect) for one in verdicts if one.effect is not None]
    ends = [abs(end) for one in verdicts for end in one.shown if end is not None]
    return min(max([2 * margin, *effects, *ends]), _CLIP * max([margin, *effects]))
