"""Numbers that stand beside every verdict, as columns over the cells."""

from __future__ import annotations

import numpy as np

from gpubench.stats.decision import Decisions
from gpubench.stats.paired_blocks import BASELINE, CANDIDATE, Pairs, masked_mean
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
