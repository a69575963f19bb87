"""A value with its interval; the ratio of two means is one."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from gpubench.stats import special


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval; bounds are None where the runs don't give one."""

    value: float
    low: float | None = None
    high: float | None = None

    def times(self, factor: float) -> "Interval":
        """Multiplied by an exact number."""
        bounds = (None if bound is None else bound * factor for bound in (self.low, self.high))
        return Interval(self.value * factor, *bounds)


def ratio_of_means(above: Sequence[float], below: Sequence[float], level: float) -> Interval | None:
    """Of paired values, ``mean(above) / mean(below)`` with Fieller's interval; None for fewer than two pairs.

    The bounds are the ratios ρ at which Student's t of ``above − ρ·below`` is at its two-sided quantile; None where the
    denominator doesn't differ clearly from 0.

    Source: E. C. Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16:175 (1954).
    """
    count = len(above)
    if count < 2 or not np.mean(below):
        return None
    a, b = float(np.mean(above)), float(np.mean(below))
    (aa, ab), (_, bb) = np.cov(above, below) / count * special.stdtrit(count - 1, (1 + level) / 2) ** 2
    square, middle, rest = b * b - bb, a * b - ab, a * a - aa
    if square <= 0:
        return Interval(a / b)
    half = math.sqrt(max(0.0, middle * middle - square * rest))
    return Interval(a / b, float((middle - half) / square), float((middle + half) / square))
