"""How often a run repeats each workload, from a first pass: so often that the campaign fills its budget."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from gpubench.plan.budget import least_whole_sets

LEAST_REPS = 4
"""Of a workload in a run: fewer say nothing about their scatter."""
LEAST_SCATTER = 0.01
"""Half a dozen repetitions may agree by chance."""
UNEVEN = 2.0
"""A workload gets at most so many times an equal share of the time, and at least that part of one: a scatter that was
taken from half a dozen repetitions is known to within a third or so."""


@dataclasses.dataclass(frozen=True)
class Tried:
    """One workload in the first pass.

    Args:
        cost_s: seconds of one repetition with all that stands around it.
        scatter: relative standard deviation of the timed seconds.
        marked: repetitions of a run that don't count, on average.
    """

    cost_s: float
    scatter: float
    marked: float


@dataclasses.dataclass(frozen=True)
class FirstPass:
    """A run of the baseline with a few repetitions, before the plan is made.

    Args:
        campaign: its name.
        seconds: that it took.
        fixed_s: seconds of its run beside all repetitions: start, end, and what stands between workloads.
        tried: by ``params_id``.
    """

    campaign: str
    seconds: float
    fixed_s: float
    tried: Mapping[str, Tried]

    def run_s(self, reps: Mapping[str, int]) -> float:
        """Seconds of a run with so many timed repetitions."""
        return self.fixed_s + sum((reps[name] + one.marked) * one.cost_s for name, one in self.tried.items())


def repetitions(first: FirstPass, *, budget_s: float, blocks: int, variants: int) -> dict[str, int]:
    """Timed repetitions of a run, by ``params_id``, with which a campaign fills ``budget_s``.

    As many blocks as leave half of each run to its timed repetitions, in whole balanced sets from ``blocks`` down to
    the fewest that carry a verdict. Workloads share the time so that the variances of their means add up to the least:
    each gets time in proportion to scatter · √cost.

    Source: optimum allocation with costs, Cochran, Sampling Techniques, 3rd ed., section 5.5.
    """
    idle_s = first.run_s(dict.fromkeys(first.tried, 0))
    least = least_whole_sets(variants)
    sets = range(max(least, blocks // variants * variants), least - 1, -variants)
    fill_s = next((left for count in sets if (left := budget_s / (count * variants) - idle_s) >= idle_s), None)
    if fill_s is None:
        fill_s = budget_s / (least * variants) - idle_s
    weights = {name: max(one.scatter, LEAST_SCATTER) * math.sqrt(one.cost_s) for name, one in first.tried.items()}
    equal = sum(weights.values()) / len(weights)
    weights = {name: min(max(each, equal / UNEVEN), equal * UNEVEN) for name, each in weights.items()}
    whole = sum(weights.values())
    return {
        name: max(LEAST_REPS, math.floor(fill_s * weights[name] / whole / one.cost_s))
        for name, one in first.tried.items()
    }
