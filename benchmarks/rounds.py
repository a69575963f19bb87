"""Ratios of times that were taken in turns, round by round: what else the machine does hits both sides of a round."""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Median of the rounds' ratios, and an interval that holds the true median with at least ``confidence``."""

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f}, {self.confidence:.1%})"


def ratio(ours: Sequence[float], theirs: Sequence[float], level: float = 0.95) -> Ratio:
    """Median of ``ours[i] / theirs[i]``, with the narrowest pair of order statistics that reaches ``level``.

    Source: the binomial interval for a median (David and Nagaraja, Order Statistics, 7.1). Fewer than six rounds can't
    reach 95 %: then it is the range, and ``confidence`` says what that is worth.

    Raises:
        ValueError: no rounds, or not the same number on both sides.
    """
    found = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    count = len(found)
    if not found:
        raise ValueError("no rounds")
    cut = max((cut for cut in range((count + 1) // 2) if coverage(count, cut) >= level), default=0)
    return Ratio(statistics.median(found), found[cut], found[count - 1 - cut], coverage(count, cut))


def coverage(count: int, cut: int) -> float:
    """Chance that the median lies within ``count`` values less the ``cut`` least and the ``cut`` greatest."""
    return 1 - sum(math.comb(count, below) for below in range(cut + 1)) / float(2 ** (count - 1))


def machine() -> str:
    """Cores and load average of this moment, to stand beside figures."""
    return f"{os.cpu_count()} cores, load {' '.join(f'{load:.1f}' for load in os.getloadavg())}"
