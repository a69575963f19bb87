"""Interleaved blocks of two ways to run the same number of tasks, and the ratio of their rates."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence

from scipy import stats

Way = Callable[[], float]
"""Runs the tasks once; tasks a second."""


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Ours over theirs: geometric mean over the blocks, with its 95 % t interval on the logarithms."""

    ours: float
    theirs: float
    ratio: float
    low: float
    high: float


def interleaved(ours: Way, theirs: Way, blocks: int, order: random.Random) -> list[tuple[float, float]]:
    """Rates of both, block by block, in an order drawn for each; one pass of each before counts for nothing."""
    ours(), theirs()
    pairs = []
    for _ in range(blocks):
        ways = [("ours", ours), ("theirs", theirs)]
        order.shuffle(ways)
        rates = {name: way() for name, way in ways}
        pairs.append((rates["ours"], rates["theirs"]))
    return pairs


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Of at least two blocks."""
    logs = [math.log(ours / theirs) for ours, theirs in pairs]
    count, mean = len(logs), sum(logs) / len(logs)
    spread = math.sqrt(sum((one - mean) ** 2 for one in logs) / (count - 1) / count)
    half = float(stats.t.ppf(0.975, count - 1)) * spread
    middle = [sorted(side)[count // 2] for side in zip(*pairs, strict=True)]
    return Ratio(middle[0], middle[1], math.exp(mean), math.exp(mean - half), math.exp(mean + half))
