"""Verdicts: the one door through which every comparison goes, and the sentence that stands beside each."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from gpubench.errors import EXIT_INCONCLUSIVE, EXIT_REGRESSION
from gpubench.stats.data import ComparisonInput
from gpubench.stats.decision import (
    BROKEN,
    EQUIVALENT,
    FEW_BLOCKS,
    INCONCLUSIVE,
    OBSTACLES,
    WORDS,
    Decisions,
    bounds,
    circumstances,
    decide,
    holm_levels,
)
from gpubench.stats.flags import raise_flags
from gpubench.stats.paired_blocks import BASELINE, CANDIDATE, CellBlocks, Pairs, arrange, masked_mean, read_cell
from gpubench.stats.power import blocks_to_decide
from gpubench.stats.runs import Floats
from gpubench.stats.settings import Summary, VerdictSettings
from gpubench.stats.sign_flip import FEWEST_BLOCKS, family_flip_p, flip_p


def flip_columns(pairs: Pairs, decisions: Decisions, settings: VerdictSettings) -> tuple[Floats, Floats]:
    """``p_flip`` and ``p_family``, NaN for cells that can't be tested or have fewer than six pairs."""
    difference = pairs.differences(settings.summary)
    counted = (decisions.obstacle == 0) & (pairs.blocks >= FEWEST_BLOCKS)
    alone = np.where(counted, flip_p(difference, pairs.blocks, settings.seed), np.nan)
    return alone, family_flip_p(difference, pairs.mask, pairs.group, counted, settings.seed)


def columns(
    pairs: Pairs, decisions: Decisions, flips: tuple[Floats, Floats], adjusted: tuple[Floats, Floats]
) -> dict[str, Floats]:
    """Effects and bounds as ratios minus one, p-values and counts by name; NaN where undefined."""
    located, half_width = decisions.estimates.location, decisions.estimates.half_width
    effect = np.where(pairs.blocks > 0, located.effect, np.nan)

    def beside(summary: Summary) -> Floats:
        return np.where(pairs.blocks > 0, np.expm1(masked_mean(pairs.differences(summary), pairs.mask)), np.nan)

    def total(values: Floats, side: int) -> Floats:
        sums: Floats = np.sum(np.where(pairs.mask, values[..., side], 0.0), axis=1)
        return sums

    numbers = pairs.numbers
    return {
        "effect": np.expm1(effect),
        "low": np.expm1(effect - half_width),
        "high": np.expm1(effect + half_width),
        "low_adjusted": np.expm1(adjusted[0]),
        "high_adjusted": np.expm1(adjusted[1]),
        "p": decisions.estimates.p,
        "p_holm": decisions.p_holm,
        "p_flip": flips[0],
        "p_family": flips[1],
        "median_effect": beside("median"),
        "geomean_effect": beside("geomean"),
        "samples_baseline": total(numbers.reps, BASELINE),
        "samples_candidate": total(numbers.reps, CANDIDATE),
        "stragglers_baseline": total(numbers.stragglers, BASELINE),
        "stragglers_candidate": total(numbers.stragglers, CANDIDATE),
    }


WIDE = "wide"
"""Begins the reason of a comparison that is inconclusive by nothing but noise."""
_MOST_FIELDS = 3
_MOST_LETTERS = 60


def percent(ratio: float) -> str:
    """``0.0312`` → ``+3.1 %``."""
    return f"{100 * ratio:+.1f} %"


def reason(cell: CellBlocks, row: int, decisions: Decisions, settings: VerdictSettings) -> str:
    """Why the cell got its verdict; an inconclusive one begins with a word and a colon.

    Args:
        cell: the comparison.
        row: its place in the arrays.
        decisions: of the whole family.
        settings: how they were made.
    """
    word, family = int(decisions.word[row]), len(decisions.word)
    if word == BROKEN:
        blocks = ", ".join(map(str, cell.broken_blocks))
        return f"the candidate failed in {len(cell.broken_blocks)} blocks where the baseline ran ({blocks})"
    if word == INCONCLUSIVE:
        return _why_inconclusive(cell, row, decisions, settings)
    text = (
        f"within ±{settings.margin.percent}"
        if word == EQUIVALENT
        else f"p {p_words(decisions.p_holm[row])} after Holm over {family}"
    )
    decided = "" if cell.comparison.frozen_at is None else f"; decided at block {cell.comparison.frozen_at}"
    return f"{text} in {_blocks(decisions, row)}{_where(cell)}{decided}"


def _why_inconclusive(cell: CellBlocks, row: int, decisions: Decisions, settings: VerdictSettings) -> str:
    obstacle = OBSTACLES[int(decisions.obstacle[row])]
    if obstacle:
        return f"{obstacle}: {_obstacle(obstacle, cell, row, decisions)}"
    if cell.broken_blocks:
        where = f"the candidate failed in block {cell.broken_blocks[0]}, where the baseline ran"
        return f"failed: {where}; it can't be called equivalent or improved"
    if math.isnan(decisions.p_holm[row]):
        return f"no look yet: {_blocks(decisions, row)} so far, the first look is at 5"
    effect, half = decisions.estimates.location.effect[row], decisions.estimates.half_width[row]
    shown = f"{_blocks(decisions, row)} don't show the difference to be within ±{settings.margin.percent}"
    p = f"p {p_words(decisions.p_holm[row])} after Holm over {len(decisions.word)}"
    return f"{WIDE}: {likely(effect - half, effect + half)}{shown}, and {p}{_where(cell)}"


def likely(low: float, high: float) -> str:
    """``likely slower, not proven; `` by an interval that was made without regard to the family; mostly empty."""
    return f"{word}; " if (word := leaning(low, high)) else ""


def leaning(low: float | None, high: float | None) -> str:
    """What an interval that was made without regard to the family says of an inconclusive comparison."""
    if low is not None and low > 0:
        return "likely slower, not proven"
    return "likely faster, not proven" if high is not None and high < 0 else ""


def _obstacle(obstacle: str, cell: CellBlocks, row: int, decisions: Decisions) -> str:
    blocks = _blocks(decisions, row)
    return {
        "no data": _no_data(cell),
        "few blocks": f"{blocks} can't carry a verdict; 3 with repetitions are the least, and 5 or more are advised",
        "one sample": f"{blocks} without spread within runs say nothing about noise; take more blocks or repetitions",
        "no variation": f"all {blocks} show the same difference; repeated rows are not repeated runs",
        "order": f"{cell.order_problem}; shuffle the order within blocks",
        "environment": _changed(cell.comparison.changed),
    }[obstacle]


def _no_data(cell: CellBlocks) -> str:
    one = cell.comparison
    if one.skipped:
        return f"skipped, as planned: {one.skipped}"
    return f"no block in which both variants ran, of {one.planned_blocks} planned"


def _changed(changed: Mapping[str, str]) -> str:
    named = dict(itertools.islice(changed.items(), _MOST_FIELDS))
    words = ", ".join(f"{field} {_short(values)}" for field, values in named.items())
    more = f" and {len(changed) - len(named)} more" if len(changed) > len(named) else ""
    allow = " ".join(f"--allow {field}" for field in named)
    return f"changed with the variant: {words}{more}; if that is meant: {allow}{' …' if more else ''}"


def _short(values: str) -> str:
    return values if len(values) <= _MOST_LETTERS else f"{values[: _MOST_LETTERS - 1]}…"


def _blocks(decisions: Decisions, row: int) -> str:
    count = int(decisions.estimates.location.blocks[row])
    return f"{count} block" if count == 1 else f"{count} blocks"


def _where(cell: CellBlocks) -> str:
    return ", on these nodes" if cell.one_job else ""


def p_words(value: float) -> str:
    """``0.012``, ``< 0.0001``."""
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What may be believed of one comparison. Effects and bounds are ratios minus one; None where undefined.

    Args:
        key: what identifies the cell.
        baseline: label of the variant compared against.
        candidate: label of the variant judged.
        effect: mean over blocks of candidate minus baseline under the chosen summary; positive is slower.
        low: lower bound of the 95 % interval (a repeated confidence interval in an adaptive campaign).
        high: upper bound.
        blocks: complete pairs.
        verdict: ``broken``, ``equivalent``, ``regression``, ``improvement`` or ``inconclusive``.
        reason: why, in a sentence.
        more_blocks: for an inconclusive cell, blocks still needed if the truth is what was estimated; None where more
            of the same can't help or more than 200 would be needed. While an adaptive campaign runs, at most what
            its maximum leaves.
        p: two-sided p-value (sequential in an adaptive campaign); None for a cell that can't be tested.
        p_holm: after Holm over the family.
        p_flip: by sign flips of this cell alone, from 6 blocks.
        p_family: by step-down max-|t| over the family, from 6 blocks.
        samples: timed samples of both variants in complete pairs.
        median_effect: effect on the runs' medians.
        geomean_effect: effect on the runs' geometric means.
        beyond_margin: the whole adjusted interval lies beyond the margin, in the direction of the verdict.
        flags: names of what a reader should know beside the verdict.
        stragglers_baseline: samples above 1.5 times their run's median.
        stragglers_candidate: same for the candidate.
        straggler_limit: stragglers rarer than this share of samples can't be excluded: 3 / (samples of the variant with
            fewer).
        one_job: several blocks come from one allocation, so the verdict holds on these nodes.
        low_adjusted: lower bound of the interval at the level of Holm's step, which agrees with the verdict.
        high_adjusted: upper bound.
    """

    key: Mapping[str, object]
    baseline: str
    candidate: str
    effect: float | None
    low: float | None
    high: float | None
    blocks: int
    verdict: str
    reason: str
    more_blocks: int | None
    p: float | None
    p_holm: float | None
    p_flip: float | None
    p_family: float | None
    samples: int
    median_effect: float | None
    geomean_effect: float | None
    beyond_margin: bool
    flags: tuple[str, ...]
    stragglers_baseline: int
    stragglers_candidate: int
    straggler_limit: float | None
    one_job: bool
    low_adjusted: float | None = None
    high_adjusted: float | None = None

    @property
    def shown(self) -> tuple[float | None, float | None]:
        """The interval beside the verdict: adjusted, but for an equivalent cell, which Holm didn't decide."""
        own = self.verdict == "equivalent" or self.low_adjusted is None
        return (self.low, self.high) if own else (self.low_adjusted, self.high_adjusted)

    @property
    def leaning(self) -> str:
        """``likely slower, not proven``: by itself it would differ, in its family it doesn't; empty for others."""
        return leaning(self.low, self.high) if self.reason.startswith(WIDE) else ""

    @property
    def straggler_note(self) -> str:
        """``stragglers 0 | 2; rarer than 6.3 % can't be excluded``; empty without data."""
        if self.straggler_limit is None:
            return ""
        seen = f"stragglers {self.stragglers_baseline} | {self.stragglers_candidate}"
        return f"{seen}; rarer than {100 * self.straggler_limit:.2g} % can't be excluded"


def judge(comparisons: Sequence[ComparisonInput], settings: VerdictSettings) -> list[Verdict]:
    """Verdicts of a whole family.

    Args:
        comparisons: every comparison that was *planned*, with or without data: leaving some out would make Holm too
            mild.
        settings: chosen before looking.

    Returns:
        One verdict per comparison, in the same order.

    Raises:
        DataError: samples that no verdict can stand on.
    """
    if not comparisons:
        return []
    cells = [read_cell(comparison) for comparison in comparisons]
    pairs = arrange(cells)
    if settings.look is not None:
        pairs = pairs.head(settings.look.maximum)
    decisions = decide(pairs, circumstances(cells), settings)
    flips = flip_columns(pairs, decisions, settings)
    levels = holm_levels(decisions.estimates.p, decisions.p_holm <= settings.alpha, settings.alpha)
    frozen = np.array([cell.comparison.frozen_at is not None for cell in cells])
    adjusted = bounds(pairs, settings, decisions.estimates, frozen, levels)
    family = _Family(cells, decisions, columns(pairs, decisions, flips, adjusted), settings)
    flags = raise_flags(cells, pairs, decisions, flips, settings)
    return [_verdict(family, row, raised) for row, raised in enumerate(flags)]


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """0: every comparison equivalent or improved; 20: something regressed or broken; 21: anything else, or nothing."""
    words = {verdict.verdict for verdict in verdicts}
    if words & {"regression", "broken"}:
        return EXIT_REGRESSION
    return 0 if words and words <= {"equivalent", "improvement"} else EXIT_INCONCLUSIVE


@dataclasses.dataclass(frozen=True)
class _Family:
    cells: list[CellBlocks]
    decisions: Decisions
    columns: dict[str, Floats]
    settings: VerdictSettings


def _verdict(family: _Family, row: int, flags: tuple[str, ...]) -> Verdict:
    cell, decisions = family.cells[row], family.decisions
    number = {name: None if math.isnan(column[row]) else float(column[row]) for name, column in family.columns.items()}
    count = {
        name: int(family.columns[name][row]) for name in family.columns if name.startswith(("samples", "stragglers"))
    }
    fewest = min(count["samples_baseline"], count["samples_candidate"])
    return Verdict(
        key=cell.comparison.key,
        baseline=cell.comparison.baseline,
        candidate=cell.comparison.candidate,
        effect=number["effect"],
        low=number["low"],
        high=number["high"],
        blocks=int(decisions.estimates.location.blocks[row]),
        verdict=WORDS[decisions.word[row]],
        reason=reason(cell, row, decisions, family.settings),
        more_blocks=_more_blocks(family, row),
        p=number["p"],
        p_holm=number["p_holm"],
        p_flip=number["p_flip"],
        p_family=number["p_family"],
        samples=count["samples_baseline"] + count["samples_candidate"],
        median_effect=number["median_effect"],
        geomean_effect=number["geomean_effect"],
        beyond_margin=family.settings.margin.is_exceeded(
            WORDS[decisions.word[row]], number["low_adjusted"], number["high_adjusted"]
        ),
        flags=flags,
        stragglers_baseline=count["stragglers_baseline"],
        stragglers_candidate=count["stragglers_candidate"],
        straggler_limit=3 / fewest if fewest else None,
        one_job=cell.one_job,
        low_adjusted=number["low_adjusted"],
        high_adjusted=number["high_adjusted"],
    )


def _more_blocks(family: _Family, row: int) -> int | None:
    decisions, settings = family.decisions, family.settings
    obstacle = OBSTACLES[int(decisions.obstacle[row])]
    skipped = family.cells[row].comparison.skipped
    if decisions.word[row] != INCONCLUSIVE or skipped or obstacle in ("order", "no variation", "environment"):
        return None
    located = decisions.estimates.location
    blocks, effect = int(located.blocks[row]), float(located.effect[row])
    if obstacle:
        return FEW_BLOCKS - blocks
    failed = bool(family.cells[row].broken_blocks)
    more = blocks_to_decide(
        effect,
        float(located.sd[row]),
        blocks,
        margin=settings.margin,
        family=len(family.cells),
        alpha=settings.alpha,
        may_be_equivalent=not failed,
        may_be_improved=not failed,
    )
    look = settings.look
    if more is None or look is None or look.ended or blocks >= look.maximum:
        return more
    return min(more, look.maximum - blocks)
