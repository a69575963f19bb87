"""Jobs, blocks and runs: which variant runs when, on which nodes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.plan import Place, Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.model.quantities import format_seconds
from gpubench.plan.order import campaign_orders
from gpubench.plan.turns import interleaved, plan_turns
from gpubench.spec.plain import content_id

SAFETY = 1.5
"""A block may take up to this much longer than the time model says."""


@dataclasses.dataclass(frozen=True)
class ClusterShape:
    """A place, the bytes that each of its workers has, and the ``params_id`` of what can be measured there."""

    place: Place
    memory_limit: int
    workloads: Sequence[str]


def plan_jobs(
    campaign: str,
    *,
    rooms: Sequence[ClusterShape],
    blocks: int,
    variants: Sequence[str],
    seed: int,
    block_s: float,
    limit_s: float,
    per_job: int | None = None,
    reps: Mapping[str, int] | None = None,
) -> list[PlannedJob]:
    """One place after the other; as many blocks to a job as its time limit surely holds.

    Args:
        blocks: per place.
        block_s: seconds of one block, from the time model.
        limit_s: seconds of one job.
        per_job: blocks of one job; None: as many as surely fit.
        reps: timed repetitions by ``params_id`` where blocks are interleaved; None: they aren't.

    Raises:
        PlanRefusedError: not even one block surely fits into a job.
    """
    rng = random.Random(seed)  # noqa: S311 - a shuffle that anybody can repeat
    fitting = int(limit_s // (block_s * SAFETY))
    if fitting < 1:
        raise PlanRefusedError(
            f"a block may take {format_seconds(block_s * SAFETY)}, a job at most {format_seconds(limit_s)}",
            then=(
                "raise limits.job of the site (--set limits.job=..., as far as its queue allows), "
                "or take fewer variants, workloads or REPS"
            ),
        )
    per_job = min(fitting, per_job or fitting)
    jobs: list[PlannedJob] = []
    number = 0
    places = [room.place for room in rooms]
    for room in rooms:
        planned = []
        for order in campaign_orders(seed, room.place, len(variants), blocks):
            number += 1
            labels = [variants[at] for at in order]
            planned.append(
                plan_block(
                    campaign,
                    number=number,
                    place=room.place,
                    order=labels,
                    workloads=room.workloads,
                    rng=rng,
                    reps=reps,
                )
            )
        for start in range(0, blocks, per_job):
            part = planned[start : start + per_job]
            name = job_name(len(jobs) + 1, room.place, places)
            jobs.append(new_job(name, room.place, room.memory_limit, limit_s, part))
    return jobs


def job_name(number: int, place: Place, places: Iterable[Place]) -> str:
    """``j003-n8``; ``j003-n8-w2`` where the campaign has several counts of workers per node."""
    nodes, workers = place
    sweep = len({other for _, other in places}) > 1
    return f"j{number:03d}-n{nodes}" + (f"-w{workers}" if sweep else "")


def new_job(name: str, place: Place, memory_limit: int, limit_s: float, blocks: list[PlannedBlock]) -> PlannedJob:
    """A job at one place."""
    nodes, workers = place
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
    ``reps`` as for ``plan_jobs``.
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
    """The hash of a run's plan row: whoever edits the row and not the id is found out."""
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
