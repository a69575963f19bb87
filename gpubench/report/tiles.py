"""Tiles: one for each workload, with both sides in seconds, the change, and its place beside the margin."""

import dataclasses
import math
from collections.abc import Sequence

import markupsafe

from gpubench.report import labels
from gpubench.report.effect_range import effect_range
from gpubench.report.sections import RichText, TextSpan
from gpubench.report.verdicts import anchor as anchor_of
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.verdict import Verdict

MOST = 12
"""Comparisons that have room on a first screen; the table has the others."""
_ORDER = ("broken", "regression", "improvement", "inconclusive", "equivalent")


@dataclasses.dataclass(frozen=True)
class TileLine:
    """One comparison: its verdict, its picture (SVG), its numbers."""

    verdict: RichText
    picture: markupsafe.Markup
    numbers: RichText


@dataclasses.dataclass(frozen=True)
class Tile:
    """A workload with a line per comparison."""

    name: str
    anchor: str
    lines: list[TileLine]


def tiles(inputs: JudgedCampaign, names: Sequence[str]) -> tuple[list[Tile], int]:
    """One tile per workload and size, in the order of the plan; and how many are left out.

    If there are more than ``MOST`` comparisons, the most important ones are kept: broken or different ones first.
    """
    margin = inputs.settings.margin
    bound = max(map(abs, effect_range(inputs.verdicts, margin)))
    pairs = {labels.pair(verdict) for verdict in inputs.verdicts}
    several_baselines = len(labels.baselines(inputs.verdicts)) > 1
    made: dict[str, Tile] = {}
    weights: dict[str, tuple[int, float]] = {}
    for verdict, seconds, name in zip(inputs.verdicts, inputs.seconds, names, strict=True):
        which = labels.pair(verdict) if several_baselines else verdict.candidate
        mark = f"{labels.MARKS.get(verdict.verdict, '')} {verdict.leaning.partition(',')[0] or verdict.verdict}"
        spans: list[str | TextSpan] = [TextSpan(which, "quiet"), " "] if len(pairs) > 1 else []
        numbers: list[str | TextSpan] = []
        if seconds:
            numbers += [TextSpan(" → ".join(map(labels.seconds, seconds)), "both"), " "]
        numbers += [TextSpan(labels.effect(verdict), "strong"), " ", TextSpan(labels.interval(verdict), "quiet")]
        word = TextSpan(mark, f"verdict {verdict.verdict}")
        line = TileLine([*spans, word], dot_and_interval(verdict, margin, bound), numbers)
        anchor = anchor_of(verdict)
        made.setdefault(anchor, Tile(name, anchor, [])).lines.append(line)
        weight = (_ORDER.index(verdict.verdict) - bool(verdict.leaning), -abs(verdict.effect or 0.0))
        weights[anchor] = min(weights.get(anchor, weight), weight)
    kept = sorted(weights, key=lambda anchor: weights[anchor])[: MOST // max(len(pairs), 1) or 1]
    return [tile for anchor, tile in made.items() if anchor in kept], len(made) - len(kept)


def dot_and_interval(verdict: Verdict, margin: float, bound: float) -> markupsafe.Markup:
    """Dot and interval over the band of the margin, slower to the right; from ``-bound`` to ``bound``."""

    def at(ratio: float) -> float:
        """Percent of the width: almost even within the margin, logarithmic beyond."""
        part = math.log1p(min(abs(ratio), bound) / margin) / math.log1p(bound / margin)
        return round(50 + math.copysign(48 * part, ratio), 1)

    low, high = verdict.shown
    marks = f'<rect class="margin" x="{at(-margin)}%" width="{at(margin) - at(-margin):.1f}%" height="100%"/>'
    marks += '<line class="zero" x1="50%" x2="50%" y2="100%"/>'
    if low is not None and high is not None:
        marks += f'<line class="interval" x1="{at(low)}%" x2="{at(high)}%" y1="50%" y2="50%"/>'
    if verdict.effect is not None:
        marks += f'<circle cx="{at(verdict.effect)}%" cy="50%" r="5"/>'
    return markupsafe.Markup(  # noqa: S704 - numbers only
        f'<svg class="dot {verdict.verdict}" aria-hidden="true" width="100%" height="24">{marks}</svg>'
    )
