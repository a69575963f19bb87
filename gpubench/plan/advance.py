"""The next step of an adaptive campaign: which blocks are still needed after a look, or that it has ended.

Looks come after 5 and 6 blocks, then after every second one, and at the declared maximum. A comparison that a look has
decided is frozen; a workload runs on as long as one comparison that needs it is open.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from gpubench.model.plan import Comparison, Frozen, Plan, PlanAddition, PlannedJob
from gpubench.plan.job_limits import limit_of_more
from gpubench.plan.jobs import job_name, new_job
from gpubench.plan.more_blocks import blocks_at, later_blocks


def plan_advance(
    plan: Plan, decided: Collection[Comparison], frozen: Sequence[Frozen], created_at: str
) -> PlanAddition:
    """What a look asks for.

    Args:
        plan: its jobs include those of earlier additions, all of them ended.
        decided: comparisons that are equivalent, Holm-rejected or broken now.
        frozen: those that earlier looks had decided.
        created_at: UTC, for the addition.
    """
    # Late: scipy comes with it, and only adaptive campaigns need it.
    from gpubench.stats.sequential import schedule  # noqa: PLC0415

    assert plan.max_blocks is not None
    newly = _newly_frozen(plan, decided, frozen)
    known = {(item.params_id, item.place, item.candidate) for item in (*frozen, *newly)}
    jobs: list[PlannedJob] = []
    number = max(block.block for job in plan.jobs for block in job.blocks)
    rng = random.Random(f"{plan.seed}:{number}")  # noqa: S311 - repeatable
    for place in plan.places:
        have = blocks_at(plan, place)
        wanted = next((count for count in schedule(plan.max_blocks) if count > have), have)
        workloads = [
            item.params_id
            for item in plan.workloads
            if any(
                (one.params_id, one.place, one.candidate) not in known
                for one in plan.comparisons
                if (one.params_id, one.place) == (item.params_id, place)
                and not plan.skip_reason(one.nodes, one.baseline, one.candidate)
            )
        ]
        if not workloads:
            continue
        for block in later_blocks(plan, place, wanted, workloads, after=number, rng=rng):
            number = block.block
            name = job_name(len(plan.jobs) + len(jobs) + 1, place, plan.places)
            jobs.append(new_job(name, place, plan.memory_limit(place), limit_of_more(plan, 1), [block]))
    reason = f"advance: {len(jobs)} more blocks, {len(known)} of {len(plan.comparisons)} comparisons decided"
    return PlanAddition(created_at=created_at, reason=reason, jobs=jobs, frozen=newly, ended=not jobs)


def _newly_frozen(plan: Plan, decided: Collection[Comparison], frozen: Sequence[Frozen]) -> list[Frozen]:
    last = {job.place: max(block.block for block in job.blocks) for job in plan.jobs}
    before = {(item.params_id, item.place, item.candidate) for item in frozen}
    return [
        Frozen(
            params_id=one.params_id,
            nodes=one.nodes,
            workers_per_node=one.workers_per_node,
            candidate=one.candidate,
            block=last[one.place],
        )
        for one in plan.comparisons
        if one in decided and (one.params_id, one.place, one.candidate) not in before
    ]
