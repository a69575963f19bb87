"""The differences that the planned blocks can detect, from the noise of an earlier campaign or from assumed noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.model.cell_names import cell_names
from gpubench.model.plan import Comparison, Place, Plan, PowerPrediction
from gpubench.model.quantities import digits
from gpubench.model.text import counted
from gpubench.plan.budget import LEAST_BLOCKS, LEAST_SCATTER
from gpubench.plan.request import Request
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
            figures = predict(noisiest[cell], blocks=blocks, family=len(comparisons), margin=margin, power=POWER)
            predictions.append(PowerPrediction.model_validate({"workload": name, **at, **figures}))
    return predictions


def power_by_first_pass(
    request: Request, blocks: int, foreseen: Sequence[PowerPrediction], *, family: int
) -> list[str]:
    """A line: what ``blocks`` find if repetitions scatter as in the first pass; no workload that has a prediction.

    ``family``: how many comparisons are judged together.
    """
    if request.tried is None or not family or blocks < LEAST_BLOCKS:
        return []
    from gpubench.stats.power import detectable_effect, sigma_from_parts  # noqa: PLC0415

    names = cell_names([{"workload": item.name, "params": json.dumps(item.params)} for item in request.workloads])
    between, predicted, each = ASSUMED_RESTARTS[1], {item.params_id for item in foreseen}, []
    for name, item in zip(names, request.workloads, strict=True):
        if item.params_id in request.tried.tried and item.params_id not in predicted:
            scatter = max(request.tried.tried[item.params_id].scatter, LEAST_SCATTER)
            sigma = sigma_from_parts(between, scatter, item.reps)
            each.append(f"{digits(100 * detectable_effect(sigma, blocks, family, POWER))} % in {name}")
    return each and [
        f"{counted(blocks, 'block')} find differences of about {', '.join(each)}, or more, with {100 * POWER:g} % "
        f"power, if repetitions scatter as in the first pass, and runs of one version by {100 * between:g} %"
    ]


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
        "the noise here is not known (no earlier campaign with these sizes and repetitions); on a usual machine, "
        f"{blocks} blocks find differences of {usual} (quiet: {quiet}, restless: {restless}), and "
        f"{100 * plan.margin:g} % takes {needed} blocks (quiet: {least}, restless: {most}), with {100 * POWER:g} % "
        f"power among {counted(family, 'comparison')}"
    )
