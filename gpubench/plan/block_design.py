"""The experimental design: jobs, blocks and runs, which variant runs when, and whose repetitions come when. Pure."""

import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence

from gpubench.model.plan import Place, Plan, PlannedBlock, PlannedJob, PlannedRun, PlannedTurn
from gpubench.model.site import Site
from gpubench.node.spec.plain import content_id
from gpubench.node.spec.turns import INTERLEAVED


def campaign_orders(seed: int, place: Place, variants: int, blocks: int) -> list[list[int]]:
    """The balanced orders of a campaign at one place; more blocks only make the list longer."""
    rng = random.Random(f"{seed}:{place[0]}:{place[1]}")  # noqa: S311 - a shuffle that anybody can repeat
    return balanced_orders(variants, blocks, rng)


def balanced_orders(variants: int, blocks: int, rng: random.Random) -> list[list[int]]:
    """The order of the variants in every block.

    Blocks are made in sets: of four for two variants, of ``variants`` for any other even number, of twice as many for
    an odd one. Within a set each variant stands equally often in every place, and before and behind every other; the
    first three blocks have both orders of every pair, because a pair that had only one could not be compared. For two
    variants: AB AB BA BA or AB BA BA AB, or the same with B first.

    A block and its mirror image are neighbours no more often than chance has it. Where runs resemble those before them,
    the run that ends a block resembles the one that begins the next. If both are of one variant, the differences of
    the two blocks resemble each other, and a test that takes blocks as independent alarms too often
    (``benchmarks/calibration``, AR(1)).

    Source: Williams, Experimental designs balanced for the estimation of residual effects of treatments, Aust. J. Sci.
    Res. A 2:149 (1949): the shifts of a zigzag, of which one half are the other half from their ends if their number is
    even, and need their mirror images if it is odd.
    """
    orders: list[list[int]] = []
    while len(orders) < blocks:
        orders += _set_of_orders(rng.sample(range(variants), variants), rng)
    return orders[:blocks]


def _set_of_orders(base: Sequence[int], rng: random.Random) -> list[list[int]]:
    count = len(base)
    zigzag = [(at + 1) // 2 * (1 if at % 2 else -1) for at in range(count)]  # 0, 1, -1, 2, -2
    rows = [[base[(step + shift) % count] for step in zigzag] for shift in range(count)]
    if count % 2:
        rows += [row[::-1] for row in rows]
    elif count == 2:
        rows += rows
    first, *others = rng.sample(rows, len(rows))
    others.remove(first[::-1])
    others.insert(1, first[::-1])
    return [first, *others]


MOST_ROUNDS = 8
"""A change of turn takes about 0.02 s. A machine's speed drifts within seconds: the more rounds, the more of the drift
falls on all variants alike."""


def plan_turns(runs: Sequence[PlannedRun], reps: Mapping[str, int], rng: random.Random) -> list[PlannedTurn]:
    """The turns of one block.

    Workload by workload, in rounds: in a round each variant has its part. Every second round is the mirror image of the
    round before, so that a drift falls on all variants alike. The variant that is last in one round and first in the
    next continues without a switch: two rounds of two variants are the turns A, B, A.

    Args:
        reps: timed repetitions by ``params_id``; rounds share them as evenly as can be.
    """
    turns: list[PlannedTurn] = []
    for workload in runs[0].workloads:
        rounds = max(1, min(MOST_ROUNDS, reps[workload]))
        share, more = divmod(reps[workload], rounds)
        orders = balanced_orders(len(runs), (rounds + 1) // 2, rng)
        for number in range(rounds):
            order = orders[number // 2][:: -1 if number % 2 else 1]
            timed = share + (number < more)
            for variant in (runs[at].variant for at in order):
                goes_on = bool(turns) and (turns[-1].variant, turns[-1].workload) == (variant, workload)
                before = turns.pop().reps if goes_on else 0
                turns.append(PlannedTurn(variant=variant, workload=workload, reps=before + timed))
    return turns


def interleaved(site: Site) -> bool:
    """Whether the site's blocks have their clusters alive at the same time."""
    return site.layout.arrangement == INTERLEAVED


SAFETY = 1.5
"""A block may take up to this much longer than the time model says."""


@dataclasses.dataclass(frozen=True)
class ClusterShape:
    """A place, the bytes that each of its workers has, and the ``params_id`` of what can be measured there."""

    place: Place
    memory_limit: int
    workloads: Sequence[str]


def new_job(
    number: int, place: Place, places: Iterable[Place], *, memory_limit: int, limit_s: float, blocks: list[PlannedBlock]
) -> PlannedJob:
    """A job, named ``j003-n8``; ``j003-n8-w2`` where the campaign has several counts of workers per node."""
    nodes, workers = place
    sweep = len({other for _, other in places}) > 1
    name = f"j{number:03d}-n{nodes}" + (f"-w{workers}" if sweep else "")
    return PlannedJob(
        job=name, nodes=nodes, workers_per_node=workers, memory_limit=memory_limit, limit_s=limit_s, blocks=blocks
    )


def plan_block(
    campaign: str,
    *,
    number: int,
    place: Place,
    order: Sequence[str],
    workloads: Sequence[str],
    rng: random.Random,
    replaces: int | None = None,
    reps: Mapping[str, int] | None = None,
) -> PlannedBlock:
    """One block: the variants in this order, each with the workloads in one shuffled order.

    All runs of a block share that order, so that what depends on a workload's place cancels in the paired difference.
    ``reps`` are timed repetitions by ``params_id`` where blocks are interleaved; None: they aren't.
    """
    shuffled = rng.sample(list(workloads), len(workloads))
    runs = [
        PlannedRun(
            run=run_id(campaign, number, place, variant, shuffled), variant=variant, order=position, workloads=shuffled
        )
        for position, variant in enumerate(order)
    ]
    turns = [] if reps is None else plan_turns(runs, reps, rng)
    return PlannedBlock(block=number, runs=runs, replaces=replaces, turns=turns)


def reps_in_turns(plan: Plan) -> dict[str, int] | None:
    """Timed repetitions by ``params_id`` where the campaign's blocks are interleaved."""
    return {item.params_id: item.reps for item in plan.workloads} if interleaved(plan.site) else None


def run_id(campaign: str, block: int, place: Place, variant: str, workloads: Sequence[str]) -> str:
    """The hash of a run's plan row: an edit of the row without its id is detected."""
    nodes, workers = place
    return content_id(
        {
            "campaign": campaign,
            "block": block,
            "nodes": nodes,
            "workers": workers,
            "variant": variant,
            "workloads": list(workloads),
        }
    )
