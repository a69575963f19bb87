"""How a number differed between two variants beside its own spread."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from gpubench.stats import special


@dataclasses.dataclass(frozen=True, slots=True)
class PairedDifference:
    """A number on both sides of the same blocks.

    Args:
        blocks: with a number on both sides.
        before, after: means of the two sides, in the number's own unit.
        difference: after minus before.
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
    before, after = (float(side) for side in values.mean(axis=0))
    # What floating point leaves of equal differences is no spread.
    if spread <= 1e-12 * float(np.abs(values).max()):
        return PairedDifference(blocks, before, after, mean, None, None, None)
    size = mean / spread
    t = size * math.sqrt(blocks)
    return PairedDifference(blocks, before, after, mean, size, t, float(2 * special.stdtr(blocks - 1, -abs(t))))
