"""The differences that the planned blocks can detect, from the noise of an earlier campaign or from assumed noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.model.plan import Comparison, Place, Plan, PowerPrediction
from gpubench.model.text import counted
from gpubench.stats.data import ComparisonInput

if TYPE_CHECKING:
    from gpubench.stats.power import Sigma

POWER = 0.9
"""Chance with which a plan's differences are found."""
ASSUMED_RESTARTS = (0.004, 0.008, 0.015)
"""Standard deviations between runs of one version: a quiet, a usual and a restless machine."""
ASSUMED_ITERATION = 0.01


def predict_for_plan(
    comparisons: Sequence[Comparison], blocks: int, margin: float, pilot: Sequence[ComparisonInput]
) -> list[PowerPrediction]:
    """What ``blocks`` detect, per workload and place of the pilot."""
    # One block or two carry no verdict, whatever they show.
    if blocks < 3 or not comparisons or not pilot:
        return []
    # Late: scipy takes more than a second, which a mistyped word needn't wait for.
    from gpubench.stats.power import predict  # noqa: PLC0415

    noisiest = _noisiest(pilot)
    predictions = []
    for cell, name in {
        (comparison.params_id, comparison.place): comparison.workload for comparison in comparisons
    }.items():
        if cell in noisiest:
            at = {"params_id": cell[0], "nodes": cell[1][0], "workers_per_node": cell[1][1]}
            figures = predict(
                noisiest[cell],
                blocks=blocks,
                family=len(comparisons),
                margin=margin,
                power=POWER,
            )
            predictions.append(PowerPrediction.model_validate({"workload": name, **at, **figures}))
    return predictions


def _noisiest(pilot: Sequence[ComparisonInput]) -> dict[tuple[str, Place], Sigma]:
    """Of each workload and place the σ_d of its noisiest comparison."""
    from gpubench.stats.power import pilot_sigmas  # noqa: PLC0415

    noisiest: dict[tuple[str, Place], Sigma] = {}
    for comparison, sigma in zip(pilot, pilot_sigmas(pilot), strict=True):
        nodes, workers = (int(str(comparison.key[name])) for name in ("nodes", "workers_per_node"))
        cell = (str(comparison.key["params_id"]), (nodes, workers))
        if sigma is not None and (cell not in noisiest or sigma.upper > noisiest[cell].upper):
            noisiest[cell] = sigma
    return noisiest


def assumed_power(plan: Plan, blocks: int) -> str:
    """A sentence: what the blocks find if the noise is as assumed."""
    from gpubench.stats.power import blocks_needed, detectable_effect, sigma_from_parts  # noqa: PLC0415

    family, reps = len(plan.comparisons), min(workload.reps for workload in plan.workloads)
    sigmas = [sigma_from_parts(restart, ASSUMED_ITERATION, reps) for restart in ASSUMED_RESTARTS]
    quiet, usual, restless = (f"{100 * detectable_effect(sigma, blocks, family, POWER):.1f} %" for sigma in sigmas)
    least, needed, most = (str(blocks_needed(plan.margin, sigma, family, POWER) or "over 200") for sigma in sigmas)
    return (
        f"the noise here is not known (no earlier campaign of this shape); on a usual machine, {blocks} blocks find "
        f"differences of {usual} (quiet: {quiet}, restless: {restless}), and {100 * plan.margin:g} % takes {needed} "
        f"blocks (quiet: {least}, restless: {most}), with {100 * POWER:g} % power among {counted(family, 'comparison')}"
    )
