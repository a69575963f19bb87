"""What adaptive stopping saves against the fixed plan that is right as often at the effect it was planned for."""

from __future__ import annotations

import dataclasses

import numpy as np

from benchmarks.calibration.adaptive import run_adaptive
from benchmarks.calibration.campaigns import generate
from benchmarks.calibration.noise import Floats, Ints, Noise, Shape
from gpubench.stats.decision import EQUIVALENT, REGRESSION, decide
from gpubench.stats.settings import VerdictSettings

PLANNED_FOR = 0.03


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Campaigns in which one cell or all cells are slower.

    Args:
        noise: the model.
        shape: how many; the longest fixed plan has ``shape.blocks`` blocks.
        everywhere: all cells are slower, not only the first.
    """

    noise: Noise
    shape: Shape
    everywhere: bool

    def effect(self, slower: float) -> Floats:
        """Log effect of every cell."""
        affected = np.arange(self.shape.cells) < (self.shape.cells if self.everywhere else 1)
        return np.where(affected, np.log1p(slower), 0.0)

    def right(self, words: Ints, slower: float) -> float:
        """Share of affected cells with the right verdict; words have shape (campaigns, cells)."""
        affected = words if self.everywhere else words[:, :1]
        return float(np.mean(affected == (REGRESSION if slower else EQUIVALENT)))


def adaptive(seed: int, scenario: Scenario, slower: float, maximum: int = 12) -> tuple[float, float]:
    """Share decided rightly, and mean blocks per cell, of adaptive campaigns of at most ``maximum`` blocks."""
    ended = run_adaptive(seed, scenario.noise, scenario.shape, scenario.effect(slower), maximum=maximum)
    return scenario.right(ended.word, slower), float(ended.blocks.mean())


def fixed(seed: int, scenario: Scenario, slower: float) -> list[float]:
    """Share decided rightly by fixed plans of 5, 6, ... blocks on the same campaigns."""
    right = np.zeros(scenario.shape.blocks - 4)
    for campaigns in generate(seed, scenario.noise, scenario.shape, scenario.effect(slower)):
        pairs, size = campaigns.pairs(), campaigns.times.shape[:2]
        circumstances = campaigns.circumstances(pairs)
        for blocks in range(5, scenario.shape.blocks + 1):
            word = decide(pairs.head(blocks), circumstances, VerdictSettings(), campaigns.family).word
            right[blocks - 5] += size[0] * scenario.right(word.reshape(size), slower)
    return [float(count) / scenario.shape.campaigns for count in right]


def planned(seed: int, scenario: Scenario, power: float) -> tuple[int, int, float] | None:
    """The fixed plan of this power at PLANNED_FOR, and the maximum of the adaptive one that is right as often.

    Returns:
        Blocks of the fixed plan, declared maximum of the adaptive one, and how often the fixed one is right; None where
        ``scenario.shape.blocks`` don't suffice.
    """
    chances = fixed(seed, scenario, PLANNED_FOR)
    blocks = next((5 + more for more, right in enumerate(chances) if right >= power), None)
    if blocks is None:
        return None
    wanted = chances[blocks - 5]
    for maximum in range(blocks, scenario.shape.blocks + 1):
        if adaptive(seed, scenario, PLANNED_FOR, maximum)[0] >= wanted - 0.005:
            return blocks, maximum, wanted
    return None


def blocks_of_equal_power(right: float, chances: list[float]) -> float:
    """Blocks of the smallest fixed plan that is right as often, interpolated; ``chances`` as ``fixed`` gives them.

    At an effect of exactly δ a fixed plan is right at most 95 % of the time (the rest is called equivalent), so one
    that has come within half a point of its best counts as equal.
    """
    rising = np.maximum.accumulate(chances)
    wanted = min(right, rising[-1] - 0.005)
    reached = int(np.argmax(rising >= wanted))
    if not reached:
        return 5.0
    return 5.0 + reached - float((rising[reached] - wanted) / (rising[reached] - rising[reached - 1]))
