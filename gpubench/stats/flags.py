"""Flags: what a reader should know beside a verdict. None of them changes one.

The tests here use 1 % so that a table of 45 cells isn't full of flags that mean nothing, and ask for a size that
matters against the margin δ as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpubench.stats import special
from gpubench.stats.decision import IMPROVEMENT, REGRESSION, Decisions
from gpubench.stats.modes import several_modes
from gpubench.stats.paired_blocks import BASELINE, CANDIDATE, CellBlocks, Pairs, count, masked_mean, masked_sd
from gpubench.stats.runs import Bools, Floats
from gpubench.stats.settings import VerdictSettings

_LEVEL = 0.01
_FEWEST = 5


def tail(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """Mean and median effect differ by more than δ/2 and than the 95 % interval of their difference (t on blocks)."""
    gap = pairs.differences("mean") - pairs.differences("median")
    mean, half_width = _mean_and_half_width(gap, pairs.mask, 0.05)
    return (pairs.blocks >= 3) & (np.abs(mean) > np.maximum(settings.margin.half.log, half_width))


def drift(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """Times of both variants together trend over the blocks: least-squares slope, t test, total change above δ."""
    mask, blocks = pairs.mask, np.maximum(pairs.blocks, 1)
    level = np.where(mask, pairs.numbers.summary(settings.summary).mean(axis=2), 0.0)
    time = np.where(mask, np.arange(mask.shape[1])[None, :] - (blocks[:, None] - 1) / 2, 0.0)
    square = np.maximum(np.sum(time**2, axis=1), 1.0)
    slope = (time * level).sum(axis=1) / square
    rest = np.where(mask, level - masked_mean(level, mask)[:, None] - slope[:, None] * time, 0.0)
    freedom = np.maximum(blocks - 2, 1)
    error: Floats = np.sqrt(np.sum(rest**2, axis=1) / freedom / square)
    clear: Bools = np.abs(slope) > -special.stdtrit(freedom, _LEVEL / 2) * error
    return np.asarray((pairs.blocks >= _FEWEST) & clear & (np.abs(slope) * (blocks - 1) > settings.margin.log))


def order_effect(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """Who runs second is slower or faster by more than δ/2: t on second minus first, each first twice or more."""
    known = pairs.mask & (pairs.first != 0)
    second_minus_first = np.where(known, pairs.differences(settings.summary) * pairs.first, 0.0)
    mean, half_width = _mean_and_half_width(second_minus_first, known, _LEVEL)
    both_ways = np.minimum(count(known & (pairs.first > 0)), count(known & (pairs.first < 0))) >= 2
    return np.asarray(
        both_ways & (count(known) >= _FEWEST) & (np.abs(mean) > np.maximum(settings.margin.half.log, half_width))
    )


def order_unbalanced(pairs: Pairs) -> Bools:
    """One variant ran first in more than three quarters of the blocks (from 4): a drift no longer cancels."""
    surplus = np.abs(np.where(pairs.mask, pairs.first, 0).sum(axis=1))
    return np.asarray((pairs.blocks >= 4) & (surplus > pairs.blocks / 2))


def order_unknown(pairs: Pairs) -> Bools:
    """In some block neither ``order`` nor ``started_at`` tells who ran first."""
    return np.asarray((pairs.mask & (pairs.first == 0)).any(axis=1))


def autocorrelation(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """Neighbours resemble each other: samples within runs, or blocks (then intervals are too short).

    Within runs: lag-1 coefficients, freed of their expectation, average of all runs against their permutation variance
    of about 1/reps. Between blocks: Anderson's (1942) bound for the lag-1 coefficient.
    """
    mask = pairs.mask[..., None] & (pairs.numbers.reps >= 3)
    variance = np.where(mask, 1 / np.maximum(pairs.numbers.reps, 1), 0.0).sum(axis=(1, 2))
    total = np.where(mask, pairs.numbers.lag1, 0.0).sum(axis=(1, 2))
    mean = total / np.maximum(count(mask), 1)
    quantile = float(special.ndtri(1 - _LEVEL))
    within = (total > quantile * np.sqrt(variance)) & (mean > 0.2)
    return np.asarray(within | _between_blocks(pairs, settings, quantile))


def _between_blocks(pairs: Pairs, settings: VerdictSettings, quantile: float) -> Bools:
    difference = pairs.differences(settings.summary)
    centred = np.where(pairs.mask, difference - masked_mean(difference, pairs.mask)[:, None], 0.0)
    square = np.sum(centred**2, axis=1)
    lag1 = (centred[:, 1:] * centred[:, :-1]).sum(axis=1) / np.where(square > 0, square, 1.0)
    blocks = np.maximum(pairs.blocks, 3)
    return np.asarray((pairs.blocks >= 8) & (lag1 > (quantile * np.sqrt(blocks - 2) - 1) / (blocks - 1)))


def not_steady(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """First timed samples are slower than the rest of their runs by more than δ/2: more warm-up is needed."""
    mask = (pairs.mask[..., None] & (pairs.numbers.reps >= 4)).reshape(len(pairs.blocks), -1)
    excess = np.where(mask, pairs.numbers.first_excess.reshape(mask.shape), 0.0)
    mean, half_width = _mean_and_half_width(excess, mask, _LEVEL)
    return (count(mask) >= _FEWEST) & (mean > np.maximum(settings.margin.half.log, half_width))


def fragile(decisions: Decisions, p_flip: Floats, p_family: Floats) -> Bools:
    """A verdict by Holm that the sign flips don't support: p_family above 5 % from 8 blocks, or p_flip from 6."""
    by_holm = np.isin(decisions.word, (REGRESSION, IMPROVEMENT))
    blocks = decisions.estimates.difference.blocks
    return by_holm & (((blocks >= 8) & (p_family > 0.05)) | ((blocks >= 6) & (p_flip > 0.05)))


def lost_more_often(cell: CellBlocks) -> bool:
    """The candidate was lost in at least two blocks where the baseline ran, and more often than the other way round."""
    candidate, baseline = (
        sum((block, side) in cell.lost and (block, other) in cell.runs for block in cell.blocks)
        for side, other in ((CANDIDATE, BASELINE), (BASELINE, CANDIDATE))
    )
    return candidate >= 2 and candidate > baseline


def multimodal(cell: CellBlocks, settings: VerdictSettings) -> bool:
    """The samples of one variant have more than one mode within its runs, and the middle 80 % are wider than δ."""
    sides = ([pair[side].wall_s for pair in cell.paired] for side in (BASELINE, CANDIDATE))
    return any(several_modes(runs, apart=settings.margin.log) for runs in sides)


def raise_flags(
    cells: Sequence[CellBlocks],
    pairs: Pairs,
    decisions: Decisions,
    flips: tuple[Floats, Floats],
    settings: VerdictSettings,
) -> list[tuple[str, ...]]:
    """Names of the flags of every cell, in a fixed order."""
    columns: dict[str, Bools | list[bool]] = {
        "tail": tail(pairs, settings),
        "drift": drift(pairs, settings),
        "order": order_effect(pairs, settings),
        "order-unbalanced": order_unbalanced(pairs),
        "order-unknown": order_unknown(pairs),
        "autocorrelation": autocorrelation(pairs, settings),
        "warm-up": not_steady(pairs, settings),
        "fragile": fragile(decisions, *flips),
        "lost": [lost_more_often(cell) for cell in cells],
        "multimodal": [multimodal(cell, settings) for cell in cells],
        "oversubscribed": [cell.comparison.oversubscribed for cell in cells],
        "unchecked": [cell.comparison.unchecked for cell in cells],
        # An adaptive campaign plans up to its maximum and is meant to stop before it.
        "incomplete": [
            settings.look is None
            and cell.comparison.frozen_at is None
            and len(cell.paired) < cell.comparison.planned_blocks
            for cell in cells
        ],
    }
    return [tuple(name for name, raised in columns.items() if raised[row]) for row in range(len(cells))]


def _mean_and_half_width(values: Floats, mask: Bools, level: float) -> tuple[Floats, Floats]:
    enough = np.maximum(count(mask), 2)
    quantile: Floats = -special.stdtrit(enough - 1.0, np.full(len(enough), level / 2))
    return masked_mean(values, mask), quantile * masked_sd(values, mask) / np.sqrt(enough)
