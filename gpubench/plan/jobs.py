"""Jobs, blocks and runs: which variant runs when, on which nodes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.plan import PlannedBlock, PlannedJob, PlannedRun
from gpubench.model.quantities import format_seconds
from gpubench.plan.order import campaign_orders
from gpubench.spec.plain import content_id

SAFETY = 1.5
"""A block may take up to this much longer than the time model says."""


def plan_jobs(
    campaign: str,
    *,
    nodes: Sequence[int],
    blocks: int,
    variants: Sequence[str],
    workloads: Sequence[str],
    seed: int,
    block_s: float,
    limit_s: float,
    per_job: int | None = None,
) -> list[PlannedJob]:
    """One node count after the other; as many blocks to a job as its time limit surely holds.

    Args:
        blocks: per node count.
        workloads: their ``params_id``.
        block_s: seconds of one block, from the time model.
        limit_s: seconds of one job.
        per_job: blocks of one job; None: as many as surely fit.

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
    for count in nodes:
        planned = []
        for order in campaign_orders(seed, count, len(variants), blocks):
            number += 1
            labels = [variants[place] for place in order]
            planned.append(plan_block(campaign, number=number, nodes=count, order=labels, workloads=workloads, rng=rng))
        for start in range(0, blocks, per_job):
            part = planned[start : start + per_job]
            jobs.append(PlannedJob(job=f"j{len(jobs) + 1:03d}-n{count}", nodes=count, limit_s=limit_s, blocks=part))
    return jobs


def plan_block(
    campaign: str,
    *,
    number: int,
    nodes: int,
    order: Sequence[str],
    workloads: Sequence[str],
    rng: random.Random,
    replaces: int | None = None,
) -> PlannedBlock:
    """One block: the variants in this order, each with the workloads in one shuffled order.

    All runs of a block share that order, so that what depends on a workload's place cancels in the paired difference.
    """
    shuffled = rng.sample(list(workloads), len(workloads))
    runs = []
    for place, variant in enumerate(order):
        row = {"campaign": campaign, "block": number, "nodes": nodes, "variant": variant, "workloads": shuffled}
        runs.append(PlannedRun(run=content_id(row), variant=variant, order=place, workloads=shuffled))
    return PlannedBlock(block=number, runs=runs, replaces=replaces)
