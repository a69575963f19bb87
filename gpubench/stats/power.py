"""Before a campaign: what can n blocks detect, how many are needed, and how sure is the noise they are computed from.

σ_d is the standard deviation of one cell's difference (log candidate - log baseline) between blocks. Sources: the
non-central t for the test's power (Cohen 1988); Phillips (1990), J. Pharmacokin. Biopharm. 18:137 for two one-sided
tests; Browne (1995), Stat. Med. 14:1933 for planning with an upper limit of a pilot's standard deviation; Bartlett
(1937) for cells of like size.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from gpubench.errors import DataError
from gpubench.stats import special
from gpubench.stats.data import ComparisonInput
from gpubench.stats.margin import Margin
from gpubench.stats.paired_blocks import arrange, read_cell

MOST_BLOCKS, MOST_FURTHER = 200, 100
_ALPHA = 0.05
_CHANCES = (np.arange(512) + 0.5) / 512


@dataclasses.dataclass(frozen=True)
class Sigma:
    """A pilot's σ_d in logs.

    Args:
        upper: its one-sided 80 % upper limit; plan with this one and print both.
        freedom: degrees of freedom it rests on.
    """

    value: float
    upper: float
    freedom: int

    @staticmethod
    def of(variance: float, freedom: int, confidence: float) -> "Sigma":
        """From an estimated variance."""
        # chdtri takes the upper tail, so ``confidence`` gives the small quantile that makes an upper limit.
        upper = variance * freedom / float(special.chdtri(freedom, confidence))
        return Sigma(math.sqrt(variance), math.sqrt(upper), freedom)


def sigma_from_history(history: Sequence[Sequence[float]], confidence: float = 0.8) -> list[Sigma]:
    """σ_d of each cell, pooled where Bartlett's test doesn't tell the cells apart at 1 %, else each by itself.

    Args:
        history: per cell the log differences of its complete pairs, at least two.
        confidence: of the upper limit √(freedom / χ²_{1-confidence}); ×1.73 for one cell of 4 blocks, ×1.06 for 45.

    Raises:
        DataError: a cell with fewer than two pairs.
    """
    if any(len(cell) < 2 for cell in history):
        raise DataError(
            "a cell of the pilot has fewer than two complete blocks", then="run at least two blocks, better four"
        )
    freedoms = [len(cell) - 1 for cell in history]
    variances = [float(np.var(cell, ddof=1)) for cell in history]
    if len(history) > 1 and min(variances) > 0 and _bartlett(variances, freedoms) >= 0.01:
        pooled = float(np.average(variances, weights=freedoms))
        return [Sigma.of(pooled, sum(freedoms), confidence)] * len(history)
    return [Sigma.of(variance, freedom, confidence) for variance, freedom in zip(variances, freedoms, strict=True)]


def _bartlett(variances: Sequence[float], freedoms: Sequence[int]) -> float:
    """Bartlett's p-value for equal variances. Here, because ``scipy.stats`` takes half a second to import."""
    freedom, others = sum(freedoms), len(freedoms) - 1
    pooled = float(np.average(variances, weights=freedoms))
    spread = freedom * math.log(pooled) - float(np.dot(freedoms, np.log(variances)))
    correction = 1 + (sum(1 / group_freedom for group_freedom in freedoms) - 1 / freedom) / (3 * others)
    return float(special.chdtrc(others, max(spread, 0.0) / correction))  # rounding makes equal ones less than 0


def sigma_from_parts(restart: float, iteration: float, reps: int) -> float:
    """σ_d where no pair of runs has been seen: √(2·(restart² + iteration²/reps)); what a block shares cancels.

    Args:
        restart: standard deviation in logs between runs of one variant in one block.
        iteration: standard deviation in logs between samples of a run.
    """
    return math.sqrt(2 * (restart**2 + iteration**2 / reps))


def power_of_test(effect: float, sigma_d: float, blocks: int, family: int = 1) -> float:
    """Chance that one cell of a family is called different, by the non-central t at Holm's hardest step, α/family.

    Args:
        effect: true effect as a ratio minus one.
        sigma_d: standard deviation of a cell's block difference in logs.
        blocks: complete pairs, at least 2.
    """
    critical = _quantile(1 - _ALPHA / (2 * family), blocks)
    return float(1 - special.nctdtr(blocks - 1, abs(math.log1p(effect)) * math.sqrt(blocks) / sigma_d, critical))


def detectable_effect(sigma_d: float, blocks: int, family: int = 1, power: float = 0.9) -> float:
    """Smallest true effect (ratio minus one, slower) found with this power; arguments as ``power_of_test``.

    Solves the non-central t; the usual θ = (t_{1-α/2m} + t_power)·σ_d/√n is up to 30 % too small for few blocks.
    """
    critical = _quantile(1 - _ALPHA / (2 * family), blocks)
    return math.expm1(float(special.nctdtrinc(blocks - 1, 1 - power, critical)) * sigma_d / math.sqrt(blocks))


def blocks_needed(effect: float, sigma_d: float, family: int = 1, power: float = 0.9) -> int | None:
    """Fewest blocks (from 3) that find a true effect with this power, None above 200; see ``power_of_test``."""
    return _fewest(lambda blocks: power_of_test(effect, sigma_d, blocks, family) >= power)


def equivalence_power(margin: float, sigma_d: float, blocks: int, effect: float = 0.0) -> float:
    """Chance that a cell is called equivalent: both one-sided tests reject, averaged over the estimated deviation.

    Args:
        margin, effect: δ and the true effect, as ratios minus one; the others as ``power_of_test``.
    """
    theta, error = math.log1p(effect), sigma_d / math.sqrt(blocks)
    estimated = error * np.sqrt(2 * special.gammaincinv((blocks - 1) / 2, _CHANCES) / (blocks - 1))
    reach = Margin(margin).log - _quantile(1 - _ALPHA, blocks) * estimated
    inside = special.ndtr((reach - theta) / error) - special.ndtr((-reach - theta) / error)
    return float(np.mean(np.maximum(inside, 0.0)))


def equivalence_blocks(margin: float, sigma_d: float, power: float = 0.9) -> int | None:
    """Fewest blocks (from 3) that call a cell equivalent with this power, None above 200; see ``equivalence_power``."""
    return _fewest(lambda blocks: equivalence_power(margin, sigma_d, blocks) >= power)


def blocks_to_decide(
    effect: float,
    sd: float,
    have: int,
    *,
    margin: float,
    family: int,
    alpha: float = 0.05,
    failed: bool = False,
) -> int | None:
    """Blocks still needed for a decision at 80 % power, if the truth is what was estimated.

    Args:
        effect: estimated effect in logs.
        sd: estimated standard deviation of a block's difference in logs.
        have: complete pairs so far.
        margin: δ as a ratio minus one.
        failed: a failure has ruled out that the candidate is equivalent or improved.

    Returns:
        None where more than 200 blocks in all and 100 further ones would be needed, or nothing is left that could be
        decided.
    """
    total = np.arange(max(have + 1, 5), max(MOST_BLOCKS, have + MOST_FURTHER) + 1)
    precision = np.sqrt(total) / sd
    luck = special.stdtrit(total - 1.0, 0.8)
    differs = np.abs(effect) * precision >= special.stdtrit(total - 1.0, 1 - alpha / (2 * family)) + luck
    same = (Margin(margin).log - np.abs(effect)) * precision >= special.stdtrit(total - 1.0, 1 - alpha) + luck
    enough = np.flatnonzero((differs & (effect > 0 or not failed)) | (same & (not failed)))
    return int(total[enough[0]]) - have if len(enough) else None


def _fewest(enough: Callable[[int], bool]) -> int | None:
    return next((blocks for blocks in range(3, MOST_BLOCKS + 1) if enough(blocks)), None)


def _quantile(probability: float, blocks: int) -> float:
    return float(special.stdtrit(blocks - 1, probability))


def pilot_sigmas(pilot: Sequence[ComparisonInput]) -> list[Sigma | None]:
    """σ_d of each comparison of an earlier campaign; None where it has fewer than two complete blocks."""
    pairs = arrange([read_cell(comparison) for comparison in pilot])
    differences = pairs.differences
    history = [differences[row, : pairs.blocks[row]].tolist() for row in range(len(pilot))]
    usable = [row for row, cell in enumerate(history) if len(cell) >= 2]
    sigmas: list[Sigma | None] = [None] * len(pilot)
    if usable:
        for row, sigma in zip(usable, sigma_from_history([history[row] for row in usable]), strict=True):
            sigmas[row] = sigma if sigma.value > 0 else None
    return sigmas


def predict(sigma: Sigma, *, blocks: int, family: int, margin: float, power: float) -> dict[str, float | int | None]:
    """What ``blocks`` can do for a cell of this noise in a family of this size: the figures of ``PowerPrediction``.

    The counts of blocks are for the upper limit of σ_d.
    """
    return {
        "sigma": sigma.value,
        "sigma_upper": sigma.upper,
        "detectable": detectable_effect(sigma.value, blocks, family, power),
        "detectable_upper": detectable_effect(sigma.upper, blocks, family, power),
        "blocks_for_margin": blocks_needed(margin, sigma.upper, family, power),
        "blocks_for_equivalence": equivalence_blocks(margin, sigma.upper, power),
    }
