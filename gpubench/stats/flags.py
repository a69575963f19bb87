"""Flags: what a reader should know beside a verdict. None of them changes one.

The tests here use 1 % so that a table of 45 cells isn't full of flags that mean nothing, and ask for a size that
matters against the margin δ as well.
"""

from collections.abc import Sequence

import numpy as np

from gpubench.stats import special
from gpubench.stats.data import LEAST_TRAFFIC, ComparisonInput
from gpubench.stats.paired_blocks import BASELINE, CANDIDATE, CellBlocks, Pairs, count, masked_mean, masked_sd
from gpubench.stats.runs import Bools, Floats
from gpubench.stats.settings import VerdictSettings

_LEVEL = 0.01
_FEWEST = 5
NO_TRAFFIC = "no-traffic"


def tail(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """Mean and median effect differ by more than δ/2 and than the 95 % interval of their difference (t on blocks)."""
    gap = pairs.differences - pairs.median_differences
    mean, half_width = _mean_and_half_width(gap, pairs.mask, 0.05)
    return (pairs.blocks >= 3) & (np.abs(mean) > np.maximum(settings.margin.half.log, half_width))


def drift(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """Times of both variants together trend over the blocks: least-squares slope, t test, total change above δ."""
    mask, blocks = pairs.mask, np.maximum(pairs.blocks, 1)
    level = np.where(mask, pairs.numbers.log_mean.mean(axis=2), 0.0)
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
    ordered = pairs.mask & (pairs.first != 0)
    second_minus_first = np.where(ordered, pairs.differences * pairs.first, 0.0)
    mean, half_width = _mean_and_half_width(second_minus_first, ordered, _LEVEL)
    both_ways = np.minimum(count(ordered & (pairs.first > 0)), count(ordered & (pairs.first < 0))) >= 2
    return np.asarray(
        both_ways & (count(ordered) >= _FEWEST) & (np.abs(mean) > np.maximum(settings.margin.half.log, half_width))
    )


def order_unbalanced(pairs: Pairs) -> Bools:
    """One variant ran first in more than three quarters of the blocks (from 4): a drift no longer cancels."""
    surplus = np.abs(np.where(pairs.mask, pairs.first, 0).sum(axis=1))
    return np.asarray((pairs.blocks >= 4) & (surplus > pairs.blocks / 2))


def order_unknown(pairs: Pairs) -> Bools:
    """In some block neither ``order`` nor ``started_at`` tells who ran first."""
    return np.asarray((pairs.mask & (pairs.first == 0)).any(axis=1))


def autocorrelation(pairs: Pairs) -> Bools:
    """Neighbouring samples within runs resemble each other.

    Lag-1 coefficients, freed of their expectation, average of all runs against their permutation variance of about
    1/reps.
    """
    mask = pairs.mask[..., None] & (pairs.numbers.reps >= 3)
    variance = np.where(mask, 1 / np.maximum(pairs.numbers.reps, 1), 0.0).sum(axis=(1, 2))
    total = np.where(mask, pairs.numbers.lag1, 0.0).sum(axis=(1, 2))
    mean = total / np.maximum(count(mask), 1)
    quantile = float(special.ndtri(1 - _LEVEL))
    return np.asarray((total > quantile * np.sqrt(variance)) & (mean > 0.2))


def not_steady(pairs: Pairs, settings: VerdictSettings) -> Bools:
    """First timed samples are slower than the rest of their runs by more than δ/2: more warm-up is needed."""
    mask = (pairs.mask[..., None] & (pairs.numbers.reps >= 4)).reshape(len(pairs.blocks), -1)
    excess = np.where(mask, pairs.numbers.first_excess.reshape(mask.shape), 0.0)
    mean, half_width = _mean_and_half_width(excess, mask, _LEVEL)
    return (count(mask) >= _FEWEST) & (mean > np.maximum(settings.margin.half.log, half_width))


def lost_more_often(cell: CellBlocks) -> bool:
    """The candidate was lost in at least two blocks where the baseline ran, and more often than the other way round."""
    candidate, baseline = (
        sum(of == side and (block, other) in cell.runs for block, of in cell.lost)
        for side, other in ((CANDIDATE, BASELINE), (BASELINE, CANDIDATE))
    )
    return candidate >= 2 and candidate > baseline


def _incomplete(cell: CellBlocks) -> bool:
    """Fewer blocks than planned are complete; where dates are the blocks, nothing was planned."""
    return not cell.comparison.by_date and len(cell.paired) < cell.comparison.planned_blocks


def no_traffic(comparison: ComparisonInput) -> bool:
    """Next to nothing moved between the workers, by a workload that doesn't say what it must move."""
    return comparison.moved is not None and comparison.moved < LEAST_TRAFFIC


def raise_flags(cells: Sequence[CellBlocks], pairs: Pairs, settings: VerdictSettings) -> list[tuple[str, ...]]:
    """Names of the flags of every cell, in a fixed order."""
    columns: dict[str, Bools | list[bool]] = {
        "tail": tail(pairs, settings),
        "drift": drift(pairs, settings),
        "order": order_effect(pairs, settings),
        "order-unbalanced": order_unbalanced(pairs),
        "order-unknown": order_unknown(pairs),
        "autocorrelation": autocorrelation(pairs),
        "warm-up": not_steady(pairs, settings),
        "lost": [lost_more_often(cell) for cell in cells],
        NO_TRAFFIC: [no_traffic(cell.comparison) for cell in cells],
        "oversubscribed": [cell.comparison.oversubscribed for cell in cells],
        "unchecked": [cell.comparison.unchecked for cell in cells],
        "incomplete": [_incomplete(cell) for cell in cells],
    }
    return [tuple(name for name, raised in columns.items() if raised[row]) for row in range(len(cells))]


def _mean_and_half_width(values: Floats, mask: Bools, level: float) -> tuple[Floats, Floats]:
    enough = np.maximum(count(mask), 2)
    quantile: Floats = -special.stdtrit(enough - 1.0, np.full(len(enough), level / 2))
    return masked_mean(values, mask), quantile * masked_sd(values, mask) / np.sqrt(enough)
