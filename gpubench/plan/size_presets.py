"""Sizes of a workload that fill a share of a worker's memory. Pure."""

import math
from collections.abc import Mapping
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.node.workloads.catalogue import Shape, Workload

SHARES = {"small": 0.01, "medium": 0.1, "large": 0.5}
"""Share of a worker's memory that is in use at the peak of a repetition."""
FACTORS = {"small": 1.0, "medium": 10.0, "large": 100.0}
"""Factor on the default sizes, for a workload that holds no significant memory."""
_HALVINGS = 60


def size_preset(
    workload: Workload, params: Mapping[str, Any], size: str, *, fixed: Mapping[str, Any], shape: Shape, memory: int
) -> dict[str, Any]:
    """The parameters that preset ``size`` changes, with their values, of two digits.

    Args:
        fixed: those that the user gave; they stay, and the others grow around them.
        memory: bytes per worker; 0: not known.

    Raises:
        PlanRefusedError: the workload holds data, and the memory isn't known.
    """
    grows = [(name, exponent) for name, exponent in workload.grows if name not in fixed]

    def grown(factor: float) -> dict[str, Any]:
        return {
            name: _two_digits(params[name] * factor**exponent, whole=workload.params[name].kind != "number")
            for name, exponent in grows
        }

    def held(factor: float) -> int:
        return workload.held({**params, **grown(factor)}, shape)

    if not grows:
        return {}
    if not held(1.0):
        return grown(FACTORS[size])
    if not memory:
        raise PlanRefusedError(
            f"--size {size}: it is not known how much memory a worker has",
            then="--set layout.memory=64GiB (all workers of a node; of a GPU: node.gpu_memory), or --set the sizes",
        )
    low, high = -40.0, 60.0  # powers of two: the factor at which a worker holds just no more than its share
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if held(2.0**middle) <= SHARES[size] * memory else (low, middle)
    return grown(2.0**low)


def _two_digits(value: float, *, whole: bool) -> float:
    """Rounded down, so that a share isn't exceeded: 12 799 → 12 000; a whole number is at least 1."""
    value *= 1 + 1e-9
    if whole:
        value = max(1, math.floor(value))
    exponent = math.floor(math.log10(value)) - 1
    if whole:
        unit = 10 ** max(0, exponent)
        return int(value // unit * unit)
    return float(f"{math.floor(value / 10**exponent)}e{exponent}")
