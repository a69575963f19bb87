"""Blocks beside those that a campaign has: its list of balanced orders goes on where it stopped."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gpubench.model.plan import Place, Plan, PlanAddition, PlannedBlock, PlannedJob
from gpubench.plan.adapter_combinations import BLOCKS_PER_JOB
from gpubench.plan.job_limits import limit_of_more
from gpubench.plan.jobs import SAFETY, job_name, new_job, plan_block, reps_in_turns
from gpubench.plan.order import campaign_orders


def plan_more(plan: Plan, count: int, created_at: str) -> PlanAddition:
    """``count`` blocks more at each place, as many to a job as its time limit surely holds.

    Args:
        plan: its jobs include those of earlier additions; it has a fixed number of blocks.
        count: blocks per place.
        created_at: UTC.
    """
    jobs: list[PlannedJob] = []
    number = max(block.block for job in plan.jobs for block in job.blocks)
    rng = random.Random(f"{plan.seed}:{number}")  # noqa: S311 - repeatable
    most = max(1, int(plan.site.limits.job // (plan.time.block_s * SAFETY)))
    per_job = min(most, BLOCKS_PER_JOB.get(plan.site.launcher, most))
    for place in plan.places:
        first = next(block for job in plan.jobs if job.place == place for block in job.blocks)
        taken = set(first.runs[0].workloads)
        workloads = [item.params_id for item in plan.workloads if item.params_id in taken]
        added = later_blocks(plan, place, blocks_at(plan, place) + count, workloads, after=number, rng=rng)
        number += len(added)
        for start in range(0, len(added), per_job):
            name = job_name(len(plan.jobs) + len(jobs) + 1, place, plan.places)
            part = added[start : start + per_job]
            jobs.append(new_job(name, place, plan.memory_limit(place), limit_of_more(plan, len(part)), part))
    at = ", ".join(str(blocks_at(plan, place)) for place in plan.places)
    return PlanAddition(
        created_at=created_at, reason=f"{count} more blocks after {at}, asked for by the user", jobs=jobs
    )


def later_blocks(
    plan: Plan, place: Place, upto: int, workloads: Sequence[str], *, after: int, rng: random.Random
) -> list[PlannedBlock]:
    """The blocks at ``place`` from those that it has to ``upto``; the first gets the number behind ``after``.

    The orders go on where those of the plan stopped, so that the whole stays balanced.
    """
    labels = [variant.label for variant in plan.variants]
    orders = campaign_orders(plan.seed, place, len(labels), upto)[blocks_at(plan, place) :]
    return [
        plan_block(
            plan.campaign,
            number=at,
            place=place,
            order=[labels[position] for position in order],
            workloads=workloads,
            rng=rng,
            reps=reps_in_turns(plan),
        )
        for at, order in enumerate(orders, start=after + 1)
    ]


def blocks_at(plan: Plan, place: Place) -> int:
    """Blocks at one place; one that replaces a broken block counts once with it."""
    blocks = [block for job in plan.jobs if job.place == place for block in job.blocks]
    return sum(block.replaces is None for block in blocks)
