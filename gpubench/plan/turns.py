"""The turns of an interleaved block: whose repetitions come when."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.plan import PlannedRun, PlannedTurn
from gpubench.model.site import Site
from gpubench.plan.order import balanced_orders
from gpubench.spec.turns import INTERLEAVED

LEAST_REPS = 2
"""Timed repetitions of a turn: each turn begins with one that doesn't count."""
MOST_ROUNDS = 4
LAUNCHERS = ("fork", "srun")
"""Those that can have the supervisors of several runs on a node at the same time."""
RUNTIMES = ("conda", "docker", "modules", "venv")
"""Those that can enter images several times at once on a node."""


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


def check_arrangement(site: Site, backends: Sequence[str]) -> None:
    """Raise PlanRefusedError where clusters can't take turns."""
    if not interleaved(site):
        return
    then = "take --arrangement sequential"
    if site.launcher not in LAUNCHERS:
        raise PlanRefusedError(
            f"site {site.name}: launcher {site.launcher} starts one run at a time on a node; "
            f"an interleaved block has all of its runs there (launchers that can: {', '.join(LAUNCHERS)})",
            then=then,
        )
    if site.runtime not in RUNTIMES:
        raise PlanRefusedError(
            f"site {site.name}: runtime {site.runtime} isn't known to have several runs on a node at the same time "
            f"(runtimes that can: {', '.join(RUNTIMES)})",
            then=then,
        )
    if "parsl" in backends:
        raise PlanRefusedError(
            "Parsl's executors live outside of a cluster's processes and can't be stopped", then=then
        )
