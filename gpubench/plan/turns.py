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

    Workload by workload, in rounds: in a round each variant has its part, and over the rounds of a workload each stands
    first equally often (±1), so that what drifts, and who works after whom, isn't always the same variant's. Who is
    last in one round and first in the next goes on without a switch: two variants have the turns A, B, A.

    Args:
        runs: of the block; all have the same workloads.
        reps: timed repetitions by ``params_id``; rounds share them as evenly as can be.
        rng: the plan's own generator, seeded.
    """
    turns: list[PlannedTurn] = []
    for workload in runs[0].workloads:
        rounds = max(1, min(MOST_ROUNDS, reps[workload] // LEAST_REPS))
        each, more = divmod(reps[workload], rounds)
        for number, order in enumerate(balanced_orders(len(runs), rounds, rng)):
            timed = each + (number < more)
            for variant in (runs[at].variant for at in order):
                goes_on = bool(turns) and (turns[-1].variant, turns[-1].workload) == (variant, workload)
                before = turns.pop().reps if goes_on else 0
                turns.append(PlannedTurn(variant=variant, workload=workload, reps=before + timed))
    return turns


def interleaved(site: Site) -> bool:
    """Whether the site's blocks have their clusters alive at the same time."""
    return site.layout.arrangement == INTERLEAVED


def marked_repetitions(warmup: int, *, variants: int, together: bool) -> float:
    """Repetitions of a workload in a run that don't count, on average: the warm-up; interleaved, one a turn.

    Of two variants, the one in the middle has one turn of two rounds.
    """
    if not together:
        return float(warmup)
    return warmup + (MOST_ROUNDS - 1) * (0.5 if variants == 2 else 1.0)
