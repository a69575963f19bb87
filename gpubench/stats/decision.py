"""From estimates to words: broken, equivalent, regression, improvement or inconclusive."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gpubench.stats.estimate import OBSTACLES, Estimates, estimate
from gpubench.stats.paired_blocks import CellBlocks, Pairs
from gpubench.stats.runs import Bools, Floats, Ints
from gpubench.stats.settings import VerdictSettings

WORDS = ("inconclusive", "broken", "equivalent", "regression", "improvement")
INCONCLUSIVE, BROKEN, EQUIVALENT, REGRESSION, IMPROVEMENT = range(5)


@dataclasses.dataclass(frozen=True)
class CellCircumstances:
    """What bears on a verdict besides times; arrays of shape (cells,).

    Args:
        failed: blocks in which the candidate failed where the baseline ran.
        disordered: the order of runs can't carry a comparison.
        frozen: an earlier look has decided the cell.
        changed: more than the variant changed with the variant; by default in no cell.
    """

    failed: Ints
    disordered: Bools
    frozen: Bools
    changed: Bools | bool = False


def circumstances(cells: Sequence[CellBlocks]) -> CellCircumstances:
    """Failures, order and environment of all cells, as the gate wants them."""
    return CellCircumstances(
        np.array([len(cell.broken_blocks) for cell in cells], dtype=np.int64),
        np.array([bool(cell.order_problem) for cell in cells], dtype=bool),
        np.array([cell.comparison.frozen_at is not None for cell in cells], dtype=bool),
        np.array([bool(cell.comparison.changed) for cell in cells], dtype=bool),
    )


@dataclasses.dataclass(frozen=True)
class Decisions:
    """Verdicts of all cells; arrays of shape (cells,).

    Args:
        estimates: what they rest on.
        obstacle: index into OBSTACLES: why a cell can't be tested.
        p_holm: p-value after Holm over the family, NaN for a cell without one.
        word: index into WORDS.
    """

    estimates: Estimates
    obstacle: Ints
    p_holm: Floats
    word: Ints


def decide(
    pairs: Pairs, circumstances: CellCircumstances, settings: VerdictSettings, family: Ints | None = None
) -> Decisions:
    """Verdicts of all cells.

    ``broken`` comes first: it counts failures and rests on no time, so what makes times incomparable doesn't touch it.
    Of several obstacles the one is named that no further block takes away: a changed environment before all others
    (further blocks, or another order, would be run in it too), the order only where nothing else stands in the way.

    Args:
        pairs: complete pairs of all planned cells.
        circumstances: failures, order and environment of the same cells.
        settings: margin, error rates, looks.
        family: number of the family that each cell belongs to; None is one family. Calibration judges many campaigns at
            once.
    """
    estimates = estimate(pairs, settings, circumstances.frozen)
    located = estimates.location
    obstacle = np.where((located.obstacle == 0) & circumstances.disordered, OBSTACLES.index("order"), located.obstacle)
    obstacle = np.where(circumstances.changed, OBSTACLES.index("environment"), obstacle)
    p = np.where(obstacle == 0, estimates.p, np.nan)
    p_holm = holm(p, np.zeros(len(p), dtype=np.int64) if family is None else family)
    rejected = np.nan_to_num(p_holm, nan=1.0) <= settings.alpha
    can_be_good = circumstances.failed == 0
    word = np.select(
        [
            circumstances.failed >= 2,
            (obstacle == 0) & estimates.equivalent & can_be_good,
            rejected & (located.effect > 0),
            rejected & can_be_good,
        ],
        [BROKEN, EQUIVALENT, REGRESSION, IMPROVEMENT],
        default=INCONCLUSIVE,
    )
    return Decisions(dataclasses.replace(estimates, p=p), obstacle, p_holm, word)


def holm(p: Floats, family: Ints) -> Floats:
    """Holm's step-down p-values (Holm 1979, Scand. J. Stat. 6:65) within each family.

    Args:
        p: shape (cells,); NaN counts as 1, so that a planned cell without data keeps its place.
        family: shape (cells,).

    Returns:
        Shape (cells,), NaN where ``p`` is.
    """
    # Not statsmodels' multipletests: it forces a full garbage collection per call (50 ms) and takes a second to import,
    # which a thousand simulated campaigns can't afford. The tests hold this against it.
    counted, adjusted = np.nan_to_num(p, nan=1.0), np.empty_like(p)
    order = np.lexsort((counted, family))
    for cells in np.split(order, np.flatnonzero(np.diff(family[order])) + 1):
        steps = counted[cells] * np.arange(len(cells), 0, -1)
        adjusted[cells] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return np.where(np.isnan(p), np.nan, adjusted)


def holm_levels(p: Floats, rejected: Bools, alpha: float) -> Floats:
    """Level of the step at which Holm decided each cell of one family; from the first not rejected on that step's.

    So the interval at 1 - level lies beyond zero exactly where the cell is rejected.

    Args:
        p: shape (cells,), before Holm; NaN counts as 1.
        rejected: whether ``holm`` of them is at most ``alpha``.
        alpha: family-wise error rate.
    """
    levels = np.empty_like(p)
    steps = np.minimum(np.arange(len(p)), np.count_nonzero(rejected))
    levels[np.argsort(np.nan_to_num(p, nan=1.0), kind="stable")] = alpha / (len(p) - steps)
    return levels
