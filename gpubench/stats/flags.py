"""Flags: what a reader should know beside a verdict. None of them changes one.

The tests here use 1 % so that a table of 45 cells isn't full of flags that mean nothing, and ask for a size that
matters against the margin δ as well.

More than one mode in one cell: the excess mass test, a dip test by another road.

What takes 0.5 ms in some repetitions and 15 ms in others has two states. The mean says how often each came, and may be
another one next time.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from gpubench.stats import special
from gpubench.stats.decision import IMPROVEMENT, REGRESSION, Decisions
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
        sum(of == side and (block, other) in cell.runs for block, of in cell.lost)
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
        "incomplete": [len(cell.paired) < cell.comparison.planned_blocks for cell in cells],
    }
    return [tuple(name for name, raised in columns.items() if raised[row]) for row in range(len(cells))]


def _mean_and_half_width(values: Floats, mask: Bools, level: float) -> tuple[Floats, Floats]:
    enough = np.maximum(count(mask), 2)
    quantile: Floats = -special.stdtrit(enough - 1.0, np.full(len(enough), level / 2))
    return masked_mean(values, mask), quantile * masked_sd(values, mask) / np.sqrt(enough)


MOST = 400
"""Values that are looked at; more of them would tell smaller dents from none."""
LEAST = 30
TIES = 0.02
"""Of the samples; clocks count nanoseconds, and equal times come of rounding."""
ANCHOR = 1
"""Position of a run's sample, by time, that the others are held against: it lies in the faster of two states.

One straggler moves the mean of a run, one odd fast sample its minimum, and both make modes where there are none
(simulated: in 40 % and in 90 % of cells); the median lies in either state or between them.
"""
_DENSITIES = np.geomspace(0.05, 20.0, 60)
"""Levels of density, in units of the mean density between the first and the ninth decile."""
_CRITICAL = 1.14
"""Of √n times the excess mass: 0.5 to 1 % of simulated uniform samples of 30 to 400 values exceed it."""


def several_modes(runs: Iterable[Sequence[float]], *, apart: float) -> bool:
    """Whether the samples within these runs, in seconds, have more than one mode (test at 1 % against the uniform).

    Where the middle four fifths of them are no wider than ``apart`` (in logs), nobody cares. Samples that repeat in a
    run were rounded, and a step of rounding isn't a mode: then there is no answer, False.
    """
    runs = list(runs)
    values = pooled(runs)
    if len(values) < LEAST or np.subtract(*np.quantile(values, (0.9, 0.1))) <= apart:
        return False
    if excess_mass(values) * np.sqrt(len(values)) <= _CRITICAL:
        return False
    return sum(len(run) - len(set(run)) for run in runs) <= TIES * sum(map(len, runs))


def pooled(runs: Iterable[Sequence[float]]) -> Floats:
    """Logs of the samples of several runs, each less its run's ``anchor``; the anchors themselves are left out.

    Modes between runs are the restarts' scatter. Of more than ``MOST`` values, evenly spaced ones.
    """
    long = [run for run in runs if len(run) > ANCHOR + 1]
    if not long:
        return np.zeros(0)
    ends = np.cumsum([len(run) - 1 for run in long])
    positions = np.linspace(0, ends[-1] - 1, min(int(ends[-1]), MOST)).astype(int)
    chosen, which = np.unique(np.searchsorted(ends, positions, side="right"), return_inverse=True)  # few of thousands
    counts = np.array([len(long[at]) for at in chosen])
    logs = np.log(np.concatenate([long[at] for at in chosen]))
    logs = logs[np.lexsort((logs, np.repeat(np.arange(len(chosen)), counts)))]
    anchors = np.cumsum(counts) - counts + ANCHOR
    less = np.delete(logs - np.repeat(logs[anchors], counts), anchors)
    return np.asarray(less[positions - (ends[chosen] - np.cumsum(counts - 1))[which]])


def anchor(run: Sequence[float]) -> float:
    """The second fastest sample of a run of at least two: what the others are held against."""
    return float(np.sort(run)[min(ANCHOR, len(run) - 1)])


def excess_mass(values: Floats) -> Floats:
    """What two intervals hold above a level of density, less what one holds; the largest over all levels.

    Twice Hartigan's dip, but for the levels' being finitely many.

    Args:
        values: shape (..., n).

    Returns:
        Shape (...), from 0 to 1.

    Source: Müller and Sawitzki, Excess mass estimates and tests for multimodality, JASA 86 (1991).
    """
    ordered = np.sort(values, axis=-1)
    count = ordered.shape[-1]
    width = np.maximum(ordered[..., int(0.9 * (count - 1))] - ordered[..., int(0.1 * (count - 1))], 1e-12)
    gaps = np.diff(ordered, axis=-1) / width[..., None]
    each = 1.0 / count
    shape = (*ordered.shape[:-1], len(_DENSITIES))
    one, best_one = np.full(shape, each), np.full(shape, each)
    two, best_two = np.full(shape, each), np.full(shape, each)
    for at in range(count - 1):
        lost = _DENSITIES * gaps[..., at, None]
        two = np.maximum(two - lost, best_one) + each
        one = np.maximum(one - lost, 0.0) + each
        np.maximum(best_one, one, out=best_one)
        np.maximum(best_two, two, out=best_two)
    return np.asarray((best_two - best_one).max(axis=-1))
