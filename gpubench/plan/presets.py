"""Sizes for a workload that fit the machine, from what a worker would hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.workloads.catalogue import Shape, Workload

SHARES = {"small": 0.01, "medium": 0.1, "large": 0.5}
"""Of a worker's memory, at a repetition's worst moment."""
FACTORS = {"small": 1.0, "medium": 10.0, "large": 100.0}
"""Of the default sizes, where a workload holds nothing worth counting."""
_HALVINGS = 60


def preset(
    known: Workload, params: Mapping[str, Any], size: str, *, fixed: Mapping[str, Any], shape: Shape, memory: int
) -> dict[str, Any]:
    """The parameters that preset ``size`` changes, with their values: whole numbers of two digits.

    Args:
        known: the workload.
        params: its complete parameters.
        size: ``small``, ``medium`` or ``large``.
        fixed: those that the user gave; they stay, and the others grow around them.
        shape: of the cluster.
        memory: bytes per worker; 0: not known.

    Raises:
        PlanRefusedError: the workload holds data, and the memory isn't known.
    """
    grows = [(name, exponent) for name, exponent in known.grows if name not in fixed]

    def grown(factor: float) -> dict[str, Any]:
        return {name: _two_digits(params[name] * factor**exponent) for name, exponent in grows}

    def held(factor: float) -> int:
        return known.held({**params, **grown(factor)}, shape)

    if not grows:
        return {}
    if not held(1.0):
        return grown(FACTORS[size])
    if not memory:
        raise PlanRefusedError(
            f"--size {size}: nobody here knows how much memory a worker has",
            then="--set layout.memory=64GiB (all workers of a node; of a GPU: node.gpu_memory), or --set the sizes",
        )
    return grown(_largest(held, SHARES[size] * memory))


def _largest(held: Any, target: float) -> float:
    """The factor at which a worker just holds no more than ``target`` bytes, as ``held`` grows with it."""
    low, high = -40.0, 60.0  # powers of two
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if held(2.0**middle) <= target else (low, middle)
    return float(2.0**low)


def _two_digits(value: float) -> int:
    """Rounded down, so that a share isn't exceeded: 12 799 → 12 000; at least 1."""
    whole = max(1, math.floor(value * (1 + 1e-9)))
    unit = 10 ** max(0, len(str(whole)) - 2)
    return int(whole // unit * unit)
