"""How well a field tells two variants apart, and how a number differed between them beside its own spread."""

import dataclasses
import math
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from gpubench.stats import special


@dataclasses.dataclass(frozen=True, slots=True)
class PairedDifference:
    """A number on both sides of the same blocks.

    Args:
        blocks: with a number on both sides.
        before, after: medians of the two sides, in the number's own unit.
        difference: mean of after minus before.
        size: mean difference over its standard deviation (Cohen 1988, d_z); None where that is 0 or unknown.
        t: paired t of Student with ``blocks`` − 1 degrees of freedom; None where ``size`` is.
        p: its two-sided p-value, adjusted for nothing.
    """

    blocks: int
    before: float
    after: float
    difference: float
    size: float | None
    t: float | None
    p: float | None


def separation(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """How much of "which variant was it?" the value of a field answers: 0 nothing beyond chance, 1 everything.

    Mutual information of value and variant over the runs, in shares of the variant's entropy (Theil's uncertainty
    coefficient), and adjusted for what chance gives with the same numbers of values (Vinh, Epps and Bailey 2010, JMLR
    11:2837): a field with another value in every run (a time, a process id) tells every run apart and yet says nothing
    of the variants: 0. So does one that follows the blocks, and any field of a single block.

    Args:
        pairs: the field's value in the baseline's and in the candidate's run of each block.

    Returns:
        0 to 1; below chance counts as 0.
    """
    blocks = len(pairs)
    if not blocks:
        return 0.0
    before, after = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    totals = before + after
    seen = sum(_term(counts[value], totals[value], blocks) for counts in (before, after) for value in counts)
    # Both variants have as many runs, so what chance gives is twice that of one of them.
    by_chance = 2 * sum(_expected(total, blocks) for total in totals.values())
    room = math.log(2) - by_chance
    return max(0.0, min(1.0, (seen - by_chance) / room)) if room > 1e-12 else 0.0


def _term(count: int, total: int, blocks: int) -> float:
    """Of the mutual information, in nats: ``count`` of the ``total`` runs with a value are of one variant."""
    runs = 2 * blocks
    return count / runs * math.log(runs * count / (total * blocks)) if count else 0.0


def _expected(total: int, blocks: int) -> float:
    """The mean of ``_term`` when ``total`` values fall on 2 × ``blocks`` runs at random (hypergeometric)."""
    counts = np.arange(max(0, total - blocks), min(total, blocks) + 1)
    logs = _log_choose(blocks, counts) + _log_choose(blocks, total - counts) - _log_choose(2 * blocks, total)
    return float(np.dot(np.exp(logs), [_term(int(count), total, blocks) for count in counts]))


def _log_choose(whole: int, part: np.ndarray | int) -> np.ndarray:
    return np.asarray(special.gammaln(whole + 1) - special.gammaln(part + 1) - special.gammaln(whole - part + 1))


def paired_difference(pairs: Sequence[tuple[float, float]]) -> PairedDifference | None:
    """The difference of a number between the two sides of each block; None without blocks.

    A figure to look at, not a test to decide by: many numbers are looked at, and noise that differed by chance may
    still have moved the times.
    """
    if not pairs:
        return None
    values = np.asarray(pairs, dtype=np.float64)
    differences, blocks = values[:, 1] - values[:, 0], len(values)
    mean = float(differences.mean())
    spread = float(differences.std(ddof=1)) if blocks > 1 else 0.0
    before, after = (float(one) for one in np.median(values, axis=0))
    # What floating point leaves of equal differences is no spread.
    if spread <= 1e-12 * float(np.abs(values).max()):
        return PairedDifference(blocks, before, after, mean, None, None, None)
    size = mean / spread
    t = size * math.sqrt(blocks)
    return PairedDifference(blocks, before, after, mean, size, t, float(2 * special.stdtr(blocks - 1, -abs(t))))
