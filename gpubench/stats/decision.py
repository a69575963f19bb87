"""The test of every cell and its decision: t on the blocks' differences, Holm's correction over the family.

The words are broken, equivalent, regression, improvement and inconclusive.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from gpubench.stats import special
from gpubench.stats.margin import Margin
from gpubench.stats.paired_blocks import CellBlocks, Pairs, count, masked_mean, masked_sd
from gpubench.stats.runs import Bools, Floats, Ints
from gpubench.stats.settings import VerdictSettings

NO_VARIATION = 1e-12
FEW_BLOCKS = 5

OBSTACLES = ("", "no data", "few blocks", "one sample", "no variation", "order", "environment")
"""Why a cell can't be tested at all, by its number in ``Estimates.obstacle``."""


@dataclasses.dataclass(frozen=True)
class MeanDifference:
    """Mean difference in logs and its uncertainty; arrays of shape (cells,).

    Args:
        blocks: complete pairs.
        effect: mean over blocks of candidate minus baseline, log; 0 without pairs.
        sd: standard deviation of the differences between blocks; 0 below two pairs.
        se: standard error of ``effect``, with the floor below five blocks.
        obstacle: index into OBSTACLES.
    """

    blocks: Ints
    effect: Floats
    sd: Floats
    se: Floats
    obstacle: Ints

    @property
    def testable(self) -> Bools:
        """Cells whose t statistic exists and means something."""
        return np.equal(self.obstacle, 0)

    def two_sided(self) -> Floats:
        """P-value of no difference; 1 where it can't be tested."""
        return np.where(self.testable, 2 * special.stdtr(self._freedom, -np.abs(self._ratio(self.effect))), 1.0)

    def not_equivalent(self, margin: Margin) -> Floats:
        """Larger p-value of the two one-sided tests against ±``margin.log`` (Schuirmann 1987); 1 where untestable."""
        distance = margin.log - np.abs(self.effect)
        return np.where(self.testable, special.stdtr(self._freedom, -self._ratio(distance)), 1.0)

    def half_width(self, level: Floats | float) -> Floats:
        """Half the width of the 1 - level interval; NaN below two pairs or where nothing varies."""
        quantile = -special.stdtrit(self._freedom, np.broadcast_to(np.asarray(level) / 2, self.effect.shape))
        return np.where((self.blocks >= 2) & (self.sd > NO_VARIATION), quantile * self.se, np.nan)

    @property
    def _freedom(self) -> Floats:
        return np.maximum(self.blocks - 1, 1).astype(float)

    def _ratio(self, distance: Floats) -> Floats:
        return distance / np.where(self.testable, self.se, 1.0)


def mean_difference(pairs: Pairs) -> MeanDifference:
    """Mean difference and standard error of every cell.

    Below five blocks the standard error is at least the within-run one, √(Σ_runs var/(reps·mean²))/blocks: a handful of
    blocks that happen to agree (all without a straggler) would otherwise look far too certain.
    """
    mask, difference = pairs.mask, pairs.differences
    effect, sd = masked_mean(difference, mask), masked_sd(difference, mask)
    within, has_within = _within_run(pairs, mask)
    few = pairs.blocks < FEW_BLOCKS
    se = sd / np.sqrt(np.maximum(pairs.blocks, 1))
    obstacle = np.select(
        [pairs.blocks == 0, pairs.blocks < 3, few & ~has_within, sd <= NO_VARIATION], [1, 2, 3, 4], default=0
    )
    return MeanDifference(pairs.blocks, effect, sd, np.where(few, np.maximum(se, within), se), obstacle)


def _within_run(pairs: Pairs, mask: Bools) -> tuple[Floats, Bools]:
    # Runs of one sample say nothing about their own spread; they are taken to spread like the others of their cell.
    # Where no run spreads at all there is nothing to take: each is one sample, written down several times.
    counts = count(mask[..., None] & (pairs.numbers.reps >= 2))
    total = np.where(mask[..., None], pairs.numbers.relative_variance, 0.0).sum(axis=(1, 2))
    complete = total / np.maximum(counts, 1) * 2 * pairs.blocks
    return np.sqrt(complete) / np.maximum(pairs.blocks, 1), total > 0


@dataclasses.dataclass(frozen=True)
class Estimates:
    """What the verdict rule needs to know of every cell; arrays of shape (cells,).

    Args:
        p: two-sided p-value, NaN where there is none.
        equivalent: both one-sided tests reject.
        half_width: of the 95 % interval in logs, NaN where undefined.
    """

    difference: MeanDifference
    p: Floats
    equivalent: Bools
    half_width: Floats


def estimate(pairs: Pairs, settings: VerdictSettings) -> Estimates:
    """What the tests say of every cell by itself."""
    difference = mean_difference(pairs)
    p = np.where(difference.testable, difference.two_sided(), np.nan)
    equivalent = difference.not_equivalent(settings.margin) <= settings.alpha
    return Estimates(difference, p, equivalent, difference.half_width(settings.alpha))


def bounds(estimates: Estimates, level: Floats) -> tuple[Floats, Floats]:
    """Ends of the 1 - level interval of every cell in logs, NaN where undefined; ``level`` has shape (cells,).

    At twice alpha it lies within the margin exactly where both one-sided tests reject (Schuirmann 1987, J. Pharmacokin.
    Biopharm. 15:657).
    """
    effect, half_width = estimates.difference.effect, estimates.difference.half_width(level)
    return effect - half_width, effect + half_width


WORDS = ("inconclusive", "broken", "equivalent", "regression", "improvement")
INCONCLUSIVE, BROKEN, EQUIVALENT, REGRESSION, IMPROVEMENT = range(5)


@dataclasses.dataclass(frozen=True)
class CellCircumstances:
    """What bears on a verdict besides times; arrays of shape (cells,).

    Args:
        failed: blocks in which the candidate failed where the baseline ran.
        disordered: the order of runs can't carry a comparison.
        changed: more than the variant changed with the variant; by default in no cell.
    """

    failed: Ints
    disordered: Bools
    changed: Bools | bool = False


def circumstances(cells: Sequence[CellBlocks]) -> CellCircumstances:
    """Failures, order and environment of all cells, as the verdict rule wants them."""
    return CellCircumstances(
        np.array([len(cell.broken_blocks) for cell in cells], dtype=np.int64),
        np.array([bool(cell.order_problem) for cell in cells], dtype=bool),
        np.array([bool(cell.comparison.changed) for cell in cells], dtype=bool),
    )


@dataclasses.dataclass(frozen=True)
class Decisions:
    """Verdicts of all cells; arrays of shape (cells,).

    Args:
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
        family: number of the family that each cell belongs to; None is one family. Calibration judges many campaigns at
            once.
    """
    estimates = estimate(pairs, settings)
    difference = estimates.difference
    obstacle = np.where(
        (difference.obstacle == 0) & circumstances.disordered, OBSTACLES.index("order"), difference.obstacle
    )
    obstacle = np.where(circumstances.changed, OBSTACLES.index("environment"), obstacle)
    p = np.where(obstacle == 0, estimates.p, np.nan)
    p_holm = holm(p, np.zeros(len(p), dtype=np.int64) if family is None else family)
    rejected = np.nan_to_num(p_holm, nan=1.0) <= settings.alpha
    can_be_good = circumstances.failed == 0
    word = np.select(
        [
            circumstances.failed >= 2,
            (obstacle == 0) & estimates.equivalent & can_be_good,
            rejected & (difference.effect > 0),
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
    """
    levels = np.empty_like(p)
    steps = np.minimum(np.arange(len(p)), np.count_nonzero(rejected))
    levels[np.argsort(np.nan_to_num(p, nan=1.0), kind="stable")] = alpha / (len(p) - steps)
    return levels
