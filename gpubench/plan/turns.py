"""The turns of an interleaved block: whose repetitions come when."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from gpubench.model.plan import PlannedRun, PlannedTurn
from gpubench.model.site import Site
from gpubench.plan.order import balanced_orders
from gpubench.spec.turns import INTERLEAVED

LEAST_REPS = 2
"""Timed repetitions of a turn: each turn begins with one that doesn't count."""
MOST_ROUNDS = 2


def plan_turns(runs: Sequence[PlannedRun], reps: Mapping[str, int], rng: random.Random) -> list[PlannedTurn]:
    """The turns of one block.

    Workload by workload, in rounds: in a round each variant has one turn, and over the rounds of a workload each stands
    first equally often (±1), so that what drifts, and who works after whom, isn't always the same variant's.

    Args:
        runs: of the block; all have the same workloads.
        reps: timed repetitions by ``params_id``; rounds share them as evenly as can be.
        rng: the plan's own generator, seeded.
    """
    turns = []
    for workload in runs[0].workloads:
        rounds = max(1, min(MOST_ROUNDS, reps[workload] // LEAST_REPS))
        each, more = divmod(reps[workload], rounds)
        for number, order in enumerate(balanced_orders(len(runs), rounds, rng)):
            timed = each + (number < more)
            turns += [PlannedTurn(variant=runs[at].variant, workload=workload, reps=timed) for at in order]
    return turns


def interleaved(site: Site) -> bool:
    """Whether the site's blocks have their clusters alive at the same time."""
    return site.layout.arrangement == INTERLEAVED
