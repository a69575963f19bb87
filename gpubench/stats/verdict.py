"""Verdicts: the one door through which every comparison goes, and the sentence that stands beside each."""

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpubench.errors import EXIT_INCONCLUSIVE, EXIT_REGRESSION
from gpubench.model.quantities import digits
from gpubench.model.text import counted, shortened
from gpubench.stats.data import ComparisonInput
from gpubench.stats.decision import (
    FEW_BLOCKS,
    INCONCLUSIVE,
    NO_VARIATION,
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
from gpubench.stats.settings import FailOn, VerdictSettings

WIDE = "wide"
"""Begins the reason of a comparison that is inconclusive by nothing but noise."""
NOT_GOOD = "it can't be called equivalent or improved"
_LEANING = re.compile(rf"{WIDE}: (likely \w+, not proven);")
_MOST_FIELDS = 3
_MOST_LETTERS = 60


def share_percent(share: float) -> str:
    """``0.063`` → ``6.3``; no share is above 100 %, whatever a rule of thumb says of three samples."""
    return digits(min(100 * share, 100))


def reason(cell: CellBlocks, row: int, decisions: Decisions, settings: VerdictSettings) -> str:
    """Why the cell got its verdict; an inconclusive one begins with a word and a colon."""
    word, count = WORDS[decisions.word[row]], int(decisions.estimates.difference.blocks[row])
    blocks = counted(count, "block")
    if word == "broken":
        numbers = ", ".join(map(str, cell.broken_blocks))
        return f"the candidate failed in {counted(len(cell.broken_blocks), 'block')} where the baseline ran ({numbers})"
    if word == "inconclusive":
        if cell.comparison.by_date and not cell.blocks:
            return "no block: no date is recorded, so versions can't be separated from the days of measurement"
        if obstacle := OBSTACLES[int(decisions.obstacle[row])]:
            return f"{obstacle}: {_obstacle(obstacle, cell, blocks)}"
        if cell.broken_blocks:
            where = f"the candidate failed in block {cell.broken_blocks[0]}, where the baseline ran"
            return f"failed: {where}; {NOT_GOOD}"
    effect, half = decisions.estimates.difference.effect[row], decisions.estimates.half_width[row]
    held = (decisions.p_holm[row], len(decisions.word))
    text = reason_of_times(word, blocks, held, (effect - half, effect + half), settings)
    return f"{text}{', on these nodes' if cell.one_job else ''}"


def reason_of_times(
    word: str, blocks: str, holm: tuple[float, int], interval: tuple[float, float], settings: VerdictSettings
) -> str:
    """What times alone say for a verdict.

    Args:
        word: the verdict: equivalent, regression, improvement or inconclusive.
        blocks: how many, in words.
        holm: p-value after Holm, and the comparisons of the family.
        interval: made without regard to the family, in logs or as ratios minus one.
        settings: the margin of the equivalence, and what the numbers are.
    """
    within, p = f"within ±{settings.margin.percent}", "< 0.0001" if holm[0] < 0.0001 else f"{holm[0]:.2g}"
    p = f"p {p} after Holm over {holm[1]}"
    if word == "inconclusive":
        likely = f"{phrase}; " if (phrase := leaning(*interval)) else ""
        return f"{WIDE}: {likely}{blocks} don't show the difference to be {within}, and {p}"
    return f"{within if word == 'equivalent' else p} in {blocks}"


def leaning(low: float | None, high: float | None) -> str:
    """What an interval that was made without regard to the family says of an inconclusive comparison."""
    if low is not None and low > 0:
        return "likely slower, not proven"
    return "likely faster, not proven" if high is not None and high < 0 else ""


def _obstacle(obstacle: str, cell: CellBlocks, blocks: str) -> str:
    comparison = cell.comparison
    never = (
        f"no date on which both were measured, of {comparison.planned_blocks}"
        if comparison.by_date
        else f"no block in which both variants ran, of {comparison.planned_blocks} planned"
        f"{failures(cell.failures(BASELINE), cell.failures(CANDIDATE))}"
    )
    return {
        "no data": f"skipped, as planned: {comparison.skipped}" if comparison.skipped else cell.lacking() or never,
        "few blocks": f"{blocks}; a verdict needs at least 3 with repetitions, and 5 or more are advised",
        "one sample": f"{blocks} without spread within runs say nothing about noise; take more blocks or repetitions",
        "no variation": f"all {blocks} show the same difference; repeated rows are not repeated runs",
        "order": cell.order_problem,
        "environment": _changed(comparison.changed),
    }[obstacle]


def failures(baseline: int, candidate: int) -> str:
    """In how many blocks each side of a cell without data failed: ``; the baseline failed in 8``."""
    counts = {"baseline": baseline, "candidate": candidate}
    return "".join(f"; the {side} failed in {count}" for side, count in counts.items() if count)


def _changed(changed: Mapping[str, str]) -> str:
    named = dict(itertools.islice(changed.items(), _MOST_FIELDS))
    changes = ", ".join(f"{field} {shortened(values, _MOST_LETTERS)}" for field, values in named.items())
    more = f" and {len(changed) - len(named)} more" if len(changed) > len(named) else ""
    allow = " ".join(f"--allow {field}" for field in named)
    return f"changed with the variant: {changes}{more}; if that is meant: {allow}{' …' if more else ''}"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What may be believed of one comparison. Effects and bounds are ratios minus one; None where undefined.

    Args:
        effect: mean over blocks of candidate minus baseline, in logs of their means; positive is slower.
        low: lower bound of the 95 % interval.
        blocks: complete pairs.
        verdict: ``broken``, ``equivalent``, ``regression``, ``improvement`` or ``inconclusive``.
        more_blocks: for an inconclusive cell, blocks still needed if the truth is what was estimated; None where more
            of the same can't help or more than 200 would be needed.
        p: two-sided p-value; None for a cell that can't be tested.
        p_holm: after Holm over the family.
        samples: timed samples of both variants in complete pairs.
        median_effect: effect on the runs' medians.
        beyond_margin: the whole adjusted interval lies beyond the margin, in the direction of the verdict.
        flags: names of what a reader should know beside the verdict.
        stragglers_baseline: samples above 1.5 times their run's median.
        straggler_limit: stragglers rarer than this share of samples can't be excluded: 3 / (samples of the variant with
            fewer).
        one_job: several blocks come from one allocation, so the verdict holds on these nodes.
        sides_s: seconds of baseline and candidate, as ``results.judge`` adds them; None where no block has both.
        moved: bytes between workers in a repetition, the most of any run; None where that isn't known.
        low_adjusted: lower bound of the interval at the level of Holm's step, which agrees with what Holm decided.
        low_equivalence: lower bound of the 90 % interval; it lies within the margin exactly where both one-sided tests
            reject.
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
    more_blocks: int | None = None
    p: float | None = None
    p_holm: float | None = None
    samples: int = 0
    median_effect: float | None = None
    beyond_margin: bool = False
    flags: tuple[str, ...] = ()
    stragglers_baseline: int = 0
    stragglers_candidate: int = 0
    straggler_limit: float | None = None
    one_job: bool = False
    moved: int | None = None
    sides_s: tuple[float, float] | None = None
    low_adjusted: float | None = None
    high_adjusted: float | None = None
    low_equivalence: float | None = None
    high_equivalence: float | None = None

    @property
    def shown(self) -> tuple[float | None, float | None]:
        """The interval on which the verdict rests: of an equivalent cell the margin's, of others Holm's."""
        if self.verdict == "equivalent":
            return self.low_equivalence, self.high_equivalence
        return self.low_adjusted, self.high_adjusted

    @property
    def leaning(self) -> str:
        """``likely slower, not proven``: by itself it would differ, in its family it doesn't; empty for others."""
        match = _LEANING.match(self.reason)
        return match[1] if match else ""

    @property
    def straggler_note(self) -> str:
        """``stragglers 0 | 2; rarer than 6.3 % can't be excluded``; empty without data."""
        if self.straggler_limit is None:
            return ""
        seen = f"stragglers {self.stragglers_baseline} | {self.stragglers_candidate}"
        return f"{seen}; rarer than {share_percent(self.straggler_limit)} % can't be excluded"


def judge(comparisons: Sequence[ComparisonInput], settings: VerdictSettings) -> list[Verdict]:
    """Verdicts of a whole family.

    Args:
        comparisons: every comparison that was *planned*, with or without data: leaving some out would make Holm too
            mild.

    Returns:
        One verdict per comparison, in the same order.

    Raises:
        DataError: samples that no verdict can stand on.
    """
    if not comparisons:
        return []
    cells = [read_cell(comparison) for comparison in comparisons]
    pairs = arrange(cells)
    decisions = decide(pairs, circumstances(cells), settings)
    levels = holm_levels(decisions.estimates.p, decisions.p_holm <= settings.alpha, settings.alpha)
    ends = {
        "adjusted": bounds(decisions.estimates, levels),
        "equivalence": bounds(decisions.estimates, np.full(len(cells), 2 * settings.alpha)),
    }
    columns = _columns(pairs, decisions, ends)
    flags = raise_flags(cells, pairs, settings)
    return [
        _verdict(cell, row, decisions, settings, columns=columns, flags=raised)
        for row, (cell, raised) in enumerate(zip(cells, flags, strict=True))
    ]


def exit_code(verdicts: Sequence[Verdict], fail_on: FailOn | None = FailOn.INCONCLUSIVE) -> int:
    """0: every comparison equivalent or improved; 20: something regressed or broken; 21: anything else, or nothing.

    0 instead of 21 with ``FailOn.REGRESSION`` if something was compared; always 0 with None.
    """
    if fail_on is None:
        return 0
    kinds = {verdict.verdict for verdict in verdicts}
    if kinds & {"regression", "broken"}:
        return EXIT_REGRESSION
    is_measured = any(verdict.blocks for verdict in verdicts)
    if (kinds and kinds <= {"equivalent", "improvement"}) or (fail_on is FailOn.REGRESSION and is_measured):
        return 0
    return EXIT_INCONCLUSIVE


def _verdict(
    cell: CellBlocks,
    row: int,
    decisions: Decisions,
    settings: VerdictSettings,
    *,
    columns: Mapping[str, Floats],
    flags: tuple[str, ...],
) -> Verdict:
    word = WORDS[decisions.word[row]]
    figures: dict[str, Any] = {
        name: None if math.isnan(column[row]) else float(column[row]) for name, column in columns.items()
    }
    counts = {name: int(figures.pop(name)) for name in columns if name.startswith(("samples", "stragglers"))}
    fewest = min(counts["samples_baseline"], counts["samples_candidate"])
    return Verdict(
        key=cell.comparison.key,
        baseline=cell.comparison.baseline,
        candidate=cell.comparison.candidate,
        blocks=int(decisions.estimates.difference.blocks[row]),
        verdict=word,
        reason=reason(cell, row, decisions, settings),
        more_blocks=_more_blocks(cell, row, decisions, settings),
        samples=counts["samples_baseline"] + counts["samples_candidate"],
        beyond_margin=settings.margin.is_exceeded(word, figures["low_adjusted"], figures["high_adjusted"]),
        flags=flags,
        stragglers_baseline=counts["stragglers_baseline"],
        stragglers_candidate=counts["stragglers_candidate"],
        straggler_limit=3 / fewest if fewest else None,
        one_job=cell.one_job,
        moved=cell.comparison.moved,
        **figures,
    )


def _columns(pairs: Pairs, decisions: Decisions, ends: Mapping[str, tuple[Floats, Floats]]) -> dict[str, Floats]:
    """Effects and bounds as ratios minus one, p-values and counts of all cells by name; NaN where undefined."""
    difference, half_width = decisions.estimates.difference, decisions.estimates.half_width
    has_blocks = pairs.blocks > 0
    effect = np.where(has_blocks, difference.effect, np.nan)
    logs = {
        "effect": effect,
        "low": effect - half_width,
        "high": effect + half_width,
        **{f"{side}_{name}": both[at] for name, both in ends.items() for at, side in enumerate(("low", "high"))},
        "median_effect": np.where(has_blocks, masked_mean(pairs.median_differences, pairs.mask), np.nan),
    }
    counts = {"samples": pairs.numbers.reps, "stragglers": pairs.numbers.stragglers}
    return {
        **{name: np.expm1(values) for name, values in logs.items()},
        "p": decisions.estimates.p,
        "p_holm": decisions.p_holm,
        **{
            f"{name}_{word}": np.where(pairs.mask, values[..., side], 0.0).sum(axis=1)
            for name, values in counts.items()
            for side, word in ((BASELINE, "baseline"), (CANDIDATE, "candidate"))
        },
    }


def _more_blocks(cell: CellBlocks, row: int, decisions: Decisions, settings: VerdictSettings) -> int | None:
    obstacle = OBSTACLES[int(decisions.obstacle[row])]
    unalterable = (
        cell.comparison.skipped
        or cell.comparison.by_date
        or obstacle in ("order", "no variation", "environment")
        or (obstacle == "no data" and cell.failures(BASELINE) >= 2)  # further blocks would fail, too
        or cell.lacking()
    )
    if decisions.word[row] != INCONCLUSIVE or unalterable:
        return None
    difference = decisions.estimates.difference
    blocks = int(difference.blocks[row])
    if obstacle:
        return FEW_BLOCKS - blocks
    return blocks_to_decide(
        float(difference.effect[row]),
        max(float(difference.sd[row]), NO_VARIATION),
        blocks,
        margin=settings.margin,
        family=len(decisions.word),
        alpha=settings.alpha,
        failed=bool(cell.broken_blocks),
    )
