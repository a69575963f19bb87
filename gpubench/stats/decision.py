"""The test of every cell and its decision: t on the blocks' differences, at one look or at several, Holm's correction.

The words are broken, equivalent, regression, improvement and inconclusive.

Looking at a campaign while it runs, without raising more false alarms: alpha spending and its boundaries.

Sources: Armitage, McPherson & Rowe (1969), JRSS A 132:235 (the recursion); Lan & DeMets (1983), Biometrika 70:659 and
Kim & DeMets (1987), Biometrika 74:149 (spending functions, α·t^ρ with ρ = 2); Liu & Anderson (2008), JASA 103:1625 and
Maurer & Bretz (2013), Stat. Biopharm. Res. 5:311 (sequential p-values, and Holm on those); Jennison & Turnbull (1989),
JRSS B 51:305 (repeated confidence intervals).
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from gpubench.stats import special
from gpubench.stats.paired_blocks import CellBlocks, Pairs, count, masked_mean, masked_sd
from gpubench.stats.runs import Bools, Floats, Ints
from gpubench.stats.settings import Looks, Margin, Metric, VerdictSettings

NO_VARIATION = 1e-12
COUNTED = 2 * NO_VARIATION
"""Standard deviation in logs of counts that don't vary."""
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


def mean_difference(pairs: Pairs, settings: VerdictSettings) -> MeanDifference:
    """Mean difference and standard error of every cell.

    Below five blocks the standard error is at least the within-run one, √(Σ_runs var/(reps·mean²))/blocks: a handful of
    blocks that happen to agree (all without a straggler) would otherwise look far too certain.
    """
    mask, difference = pairs.mask, pairs.differences(settings.summary)
    effect, sd = masked_mean(difference, mask), masked_sd(difference, mask)
    within, has_within = _within_run(pairs, mask)
    few = pairs.blocks < FEW_BLOCKS
    if settings.metric is Metric.BYTES_MOVED:
        # A count may well be the same in every block: that is what it is, and no row that was copied.
        sd = np.maximum(sd, COUNTED)
        has_within = has_within | (sd <= COUNTED)
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
    """What the gate needs to know of every cell; arrays of shape (cells,).

    Args:
        p: two-sided p-value (sequential in an adaptive campaign), NaN where there is none.
        equivalent: both one-sided tests reject.
        half_width: of the 95 % interval in logs (a repeated confidence interval in an adaptive campaign), NaN where
            undefined.
    """

    difference: MeanDifference
    p: Floats
    equivalent: Bools
    half_width: Floats


def estimate(pairs: Pairs, settings: VerdictSettings, frozen: Bools) -> Estimates:
    """Estimates at the one look of a fixed plan, or at all looks so far of an adaptive one.

    Args:
        frozen: cells that an earlier look has decided, shape (cells,); no later look spends anything on them.
    """
    if settings.look is None:
        difference = mean_difference(pairs, settings)
        p = np.where(difference.testable, difference.two_sided(), np.nan)
        equivalent = difference.not_equivalent(settings.margin) <= settings.alpha
        return Estimates(difference, p, equivalent, difference.half_width(settings.alpha))
    return _estimate_at_looks(pairs.head(settings.look.maximum), settings, settings.look, frozen)


def _estimate_at_looks(pairs: Pairs, settings: VerdictSettings, look: Looks, frozen: Bools) -> Estimates:
    difference = mean_difference(pairs, settings)
    p, level = np.full(pairs.blocks.shape, np.nan), np.full(pairs.blocks.shape, settings.alpha)
    equivalent = np.zeros(pairs.blocks.shape, dtype=bool)
    ended = ~frozen & look.ended
    # A cell's looks depend only on its count of pairs and on whether it has ended, so such cells go through together.
    for blocks, last in sorted(set(zip(pairs.blocks.tolist(), ended.tolist(), strict=True)) - {(0, False), (0, True)}):
        cells = np.equal(pairs.blocks, blocks) & np.equal(ended, last)
        spend = settings.alpha * T_SHARE
        level[cells] = nominal_levels(looks_so_far(blocks, look.maximum), look.maximum, spend, 2, last)[-1]
        if looks := _looks(blocks, look.maximum, last):
            p[cells], equivalent[cells] = _test_at(looks, pairs.select(cells), settings, Looks(look.maximum, last))
    return Estimates(
        difference,
        np.where(difference.testable, p, np.nan),
        equivalent & difference.testable,
        difference.half_width(level),
    )


def _looks(blocks: int, maximum: int, last: bool) -> tuple[int, ...]:
    """Those at which a cell with this many pairs is tested; an unscheduled count only where it is the last there is."""
    return tuple(look for look in looks_so_far(blocks, maximum) if last or look in schedule(maximum))


def _test_at(looks: tuple[int, ...], pairs: Pairs, settings: VerdictSettings, look: Looks) -> tuple[Floats, Bools]:
    # Only a scheduled count of blocks is tested (or the last one): a test at any other would be a look nobody has paid
    # for.
    seen = [mean_difference(pairs.head(blocks), settings) for blocks in looks]
    p_values = np.stack([difference.two_sided() for difference in seen], axis=1)
    p = sequential_p(p_values, looks, look.maximum, settings.alpha, look.ended)
    levels = nominal_levels(looks, look.maximum, settings.alpha * T_SHARE, 1, look.ended)
    crossed = [
        difference.not_equivalent(settings.margin) <= level for difference, level in zip(seen, levels, strict=True)
    ]
    return p, np.any(crossed, axis=0)


def bounds(
    pairs: Pairs, settings: VerdictSettings, estimates: Estimates, frozen: Bools, level: Floats
) -> tuple[Floats, Floats]:
    """Ends of the 1 - level interval of every cell in logs, NaN where undefined; ``level`` has shape (cells,).

    In an adaptive campaign it is the repeated confidence interval of the last look. Where that of an earlier look lies
    beyond zero, its end counts: what a look has decided no later one takes back.
    """
    low, high = _fixed_ends(estimates, level)
    for cells, lows, highs in _ends_at_looks(pairs, settings, frozen, level, sides=2):
        least, most = lows.max(axis=0), highs.min(axis=0)
        low[cells] = np.where(least > 0, least, lows[-1])
        high[cells] = np.where(most < 0, most, highs[-1])
    return _around(estimates, low, high)


def equivalence_bounds(
    pairs: Pairs, settings: VerdictSettings, estimates: Estimates, frozen: Bools
) -> tuple[Floats, Floats]:
    """Ends of the 1 - 2 alpha interval of every cell in logs, NaN where undefined.

    It lies within the margin exactly where both one-sided tests reject (Schuirmann 1987, J. Pharmacokin. Biopharm.
    15:657). In an adaptive campaign it is the repeated interval of the first look that rejects, else of the last.
    """
    level = np.full(pairs.blocks.shape, settings.alpha)
    low, high = _fixed_ends(estimates, 2 * level)
    for cells, lows, highs in _ends_at_looks(pairs, settings, frozen, level, sides=1):
        within = (lows >= -settings.margin.log) & (highs <= settings.margin.log)
        at = np.where(within.any(axis=0), within.argmax(axis=0), len(lows) - 1)
        low[cells], high[cells] = (np.take_along_axis(side, at[None], axis=0)[0] for side in (lows, highs))
    return _around(estimates, low, high)


def _fixed_ends(estimates: Estimates, level: Floats) -> tuple[Floats, Floats]:
    half = estimates.difference.half_width(level)
    return estimates.difference.effect - half, estimates.difference.effect + half


def _around(estimates: Estimates, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    effect = estimates.difference.effect
    return np.minimum(low, effect), np.maximum(high, effect)


def _ends_at_looks(
    pairs: Pairs, settings: VerdictSettings, frozen: Bools, level: Floats, *, sides: int
) -> Iterator[tuple[Bools, Floats, Floats]]:
    """Cells, and ends of their intervals at each look of an adaptive campaign, shape (looks, cells)."""
    if (look := settings.look) is None:
        return
    ended = ~frozen & look.ended
    kinds = set(zip(pairs.blocks.tolist(), ended.tolist(), level.tolist(), strict=True))
    for blocks, last, alpha in sorted(kind for kind in kinds if kind[0] >= 2):
        cells = np.equal(pairs.blocks, blocks) & np.equal(ended, last) & np.equal(level, alpha)
        looks = _looks(blocks, look.maximum, last) or (blocks,)
        levels = nominal_levels(looks, look.maximum, alpha * T_SHARE, sides, last)
        ends = []
        for seen_blocks, nominal in zip(looks, levels, strict=True):
            seen = mean_difference(pairs.select(cells).head(seen_blocks), settings)
            half = seen.half_width(2 * nominal / sides)
            ends.append((seen.effect - half, seen.effect + half))
        lows, highs = (np.stack(side) for side in zip(*ends, strict=True))
        yield cells, lows, highs


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
    estimates = estimate(pairs, settings, circumstances.frozen)
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


T_SHARE = 0.85
"""Share of alpha that the normal-scale boundaries may spend; the rest pays for using them on t (5 % → 4.25 %)."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_FAR = 12.0
_SMALLEST = 1e-10


def schedule(maximum: int) -> tuple[int, ...]:
    """Counts of blocks at which a campaign is looked at: 5, 6, then every second one, and ``maximum``."""
    looks = {5, 6, *range(8, maximum, 2), maximum}
    return tuple(sorted(look for look in looks if look <= maximum))


def looks_so_far(blocks: int, maximum: int) -> tuple[int, ...]:
    """Looks that a cell with this many pairs has had, the present count last even where none was scheduled for it."""
    past = tuple(look for look in schedule(maximum) if look < blocks)
    return (*past, blocks)


def alpha_spent(alpha: float, fraction: float) -> float:
    """Error spent once this fraction of the blocks is there: α·t² (Kim & DeMets, ρ = 2)."""
    return alpha * min(fraction, 1.0) ** 2


@functools.lru_cache(maxsize=4096)
def nominal_levels(
    looks: tuple[int, ...], maximum: int, alpha: float, sides: int, spend_all: bool
) -> tuple[float, ...]:
    """P-value below which each look stops, so that all looks together spend α·t².

    Args:
        looks: ascending counts of blocks.
        maximum: declared maximum of blocks, where t = 1.
        alpha: error to spend over all looks, on the normal scale.
        sides: 2 for a two-sided p-value; 1 for a one-sided one (each half of an equivalence test).
        spend_all: the last look spends all that is left, whatever its count of blocks.

    Returns:
        One level per look, of ``sides``-sided p-values.
    """
    levels: list[float] = []
    density: _Density | None = None
    used = 0.0
    for position, blocks in enumerate(looks):
        last = spend_all and position == len(looks) - 1
        target = alpha if last else alpha_spent(alpha, blocks / maximum)
        bound = _bound(density, blocks, target - used, sides)
        density = _continue(density, blocks, bound, sides)
        used = target
        levels.append(sides * float(special.ndtr(-bound)))
    return tuple(levels)


@dataclasses.dataclass(frozen=True)
class _Density:
    """Weights of the score (a sum with variance ``count``) on quadrature nodes, among campaigns that go on."""

    count: int
    score: Floats
    weight: Floats


def _bound(before: _Density | None, count: int, error: float, sides: int) -> float:
    if before is None:
        return float(-special.ndtri(error / sides))
    step = math.sqrt(count - before.count)

    def excess(bound: float) -> float:
        edge = bound * math.sqrt(count)
        crossing = special.ndtr((before.score - edge) / step)
        if sides == 2:
            crossing = crossing + special.ndtr((-edge - before.score) / step)
        return float(before.weight @ crossing) - error

    lowest = 0.0 if sides == 2 else -_FAR
    if excess(lowest) <= 0:
        return lowest
    from scipy import optimize  # noqa: PLC0415 - a quarter of a second of start, which only adaptive campaigns need

    return float(optimize.brentq(excess, lowest, 40.0))


def _continue(before: _Density | None, count: int, bound: float, sides: int) -> _Density:
    root = math.sqrt(count)
    low, high = (-bound * root if sides == 2 else -_FAR * root), bound * root
    score = (high - low) / 2 * _NODES + (high + low) / 2
    if before is None:
        density = np.exp(-(score**2) / (2 * count)) / math.sqrt(2 * math.pi * count)
    else:
        step = count - before.count
        kernel = np.exp(-((score[:, None] - before.score[None, :]) ** 2) / (2 * step)) / math.sqrt(2 * math.pi * step)
        density = kernel @ before.weight
    return _Density(count, score, density * _WEIGHTS * (high - low) / 2)


def sequential_p(p_values: Floats, looks: tuple[int, ...], maximum: int, alpha: float, spend_all: bool) -> Floats:
    """Smallest error rate at which a cell would have stopped at some look so far.

    Divided by ``T_SHARE``, so that it is compared with the whole alpha like the p-value of a fixed plan.

    Args:
        p_values: two-sided p-values at each look, shape (cells, looks).
        looks: counts of blocks, ascending.
        maximum: declared maximum of blocks.
        alpha: error rate at which decisions are made; the table is exact there.
        spend_all: as in ``nominal_levels``.

    Returns:
        Shape (cells,), between 1e-10 and 1.
    """
    rates, levels = _table(looks, maximum, alpha * T_SHARE, spend_all)
    smallest = np.ones(p_values.shape[0])
    for position in range(len(looks)):
        level = levels[:, position]
        logs = np.interp(np.log(np.maximum(p_values[:, position], 1e-300)), np.log(level), np.log(rates))
        rate = np.where(p_values[:, position] > level[-1], 1.0, np.exp(logs))
        smallest = np.minimum(smallest, rate)
    return np.minimum(smallest / T_SHARE, 1.0)


@functools.lru_cache(maxsize=256)
def _table(looks: tuple[int, ...], maximum: int, alpha: float, spend_all: bool) -> tuple[Floats, Floats]:
    # The levels of a look rise with alpha, so a table of (alpha, levels) turns a p-value into the alpha it would cross
    # at.
    grid = np.geomspace(_SMALLEST, 0.999, 150)
    rates = np.unique(np.concatenate([grid, [alpha]]))
    levels = np.array([nominal_levels(looks, maximum, float(rate), 2, spend_all) for rate in rates])
    return rates, np.maximum.accumulate(np.maximum(levels, 1e-300), axis=0)
