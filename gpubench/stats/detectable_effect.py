"""What a plan can promise: the effect that its blocks can find, and the blocks that a margin needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gpubench.stats.data import ComparisonInput
from gpubench.stats.paired_blocks import arrange, read_cell
from gpubench.stats.power import Sigma, blocks_needed, detectable_effect, equivalence_blocks, sigma_from_history
from gpubench.stats.settings import Summary


@dataclasses.dataclass(frozen=True)
class Foresight:
    """For one cell; effects are ratios minus one.

    Args:
        sigma: σ_d of the pilot, with its 80 % upper limit.
        detectable: effect that the planned blocks find with the wished power, if σ_d is as estimated.
        detectable_upper: the same at the upper limit of σ_d; plan with this one.
        blocks_for_margin: blocks that find an effect of the size of the margin (upper limit), None above 200.
        blocks_for_equivalence: blocks that call the cell equivalent when nothing differs (upper limit), None above 200.
    """

    sigma: Sigma
    detectable: float
    detectable_upper: float
    blocks_for_margin: int | None
    blocks_for_equivalence: int | None


def pilot_sigmas(pilot: Sequence[ComparisonInput], summary: Summary) -> list[Sigma | None]:
    """σ_d of each comparison of an earlier campaign; None where it has fewer than two complete blocks."""
    pairs = arrange([read_cell(comparison) for comparison in pilot])
    differences = pairs.differences(summary)
    history = [differences[row, : pairs.blocks[row]].tolist() for row in range(len(pilot))]
    usable = [row for row, cell in enumerate(history) if len(cell) >= 2]
    sigmas: list[Sigma | None] = [None] * len(pilot)
    if usable:
        for row, sigma in zip(usable, sigma_from_history([history[row] for row in usable]), strict=True):
            sigmas[row] = sigma if sigma.value > 0 else None
    return sigmas


def foresee(sigma: Sigma, *, blocks: int, family: int, margin: float, power: float) -> Foresight:
    """What ``blocks`` can do for a cell of this noise in a family of this size."""
    return Foresight(
        sigma=sigma,
        detectable=detectable_effect(sigma.value, blocks, family, power),
        detectable_upper=detectable_effect(sigma.upper, blocks, family, power),
        blocks_for_margin=blocks_needed(margin, sigma.upper, family, power),
        blocks_for_equivalence=equivalence_blocks(margin, sigma.upper, power),
    )
