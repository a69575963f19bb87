"""What a campaign that is gone on with lacks: broken blocks get a whole new block, untouched ones simply run again.

A hole in a block is never filled from another allocation: its nodes, its hour and its neighbours are gone.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping

from gpubench.model.plan import Place, Plan, PlanAddition, PlannedBlock, PlannedJob
from gpubench.plan.adapter_combinations import BLOCKS_PER_JOB
from gpubench.plan.job_limits import limit_of_more
from gpubench.plan.jobs import job_name, new_job, plan_block, reps_in_turns

ENDED = ("ok", "failed")


@dataclasses.dataclass(frozen=True)
class Repair:
    """``again``: blocks of which no run has finished, by job; ``addition``: whole new blocks for broken ones."""

    again: dict[str, list[int]]
    addition: PlanAddition | None

    @property
    def empty(self) -> bool:
        """Nothing is missing."""
        return not self.again and self.addition is None


def plan_repair(plan: Plan, status: Mapping[str, str], created_at: str) -> Repair:
    """Compare the plan (with all additions) with how its runs ended.

    Args:
        plan: jobs include those of earlier additions.
        status: ``ok failed skipped lost`` by run id, of every planned run. A ``failed`` run has ended: it is a finding,
            not a hole. ``skipped`` and ``lost`` ones are missing.
        created_at: UTC, for the addition.
    """
    replaced = {block.replaces for job in plan.jobs for block in job.blocks}
    again: dict[str, list[int]] = {}
    broken: dict[Place, list[PlannedBlock]] = {}
    for job in plan.jobs:
        for block in job.blocks:
            # What is planned to be skipped is no hole.
            wanted = [run for run in block.runs if not plan.skip_reason(job.nodes, run.variant)]
            ended = [status.get(run.run, "lost") in ENDED for run in wanted]
            if all(ended) or block.block in replaced:
                continue
            if any(ended):
                broken.setdefault(job.place, []).append(block)
            else:
                again.setdefault(job.job, []).append(block.block)
    return Repair(again=again, addition=_addition(plan, broken, created_at) if broken else None)


def _addition(plan: Plan, broken: Mapping[Place, list[PlannedBlock]], created_at: str) -> PlanAddition:
    number = max(block.block for job in plan.jobs for block in job.blocks)
    rng = random.Random(f"{plan.seed}:{number}")  # noqa: S311 - repeatable
    jobs: list[PlannedJob] = []
    for place, blocks in broken.items():
        renewed = []
        for old in blocks:
            number += 1
            order = [run.variant for run in old.runs]  # the same order keeps the set balanced
            taken = set(old.runs[0].workloads)  # an adaptive campaign leaves out what it has decided
            renewed.append(
                plan_block(
                    plan.campaign,
                    number=number,
                    place=place,
                    order=order,
                    workloads=[item.params_id for item in plan.workloads if item.params_id in taken],
                    rng=rng,
                    replaces=old.block,
                    reps=reps_in_turns(plan),
                )
            )
        at_once = BLOCKS_PER_JOB.get(plan.site.launcher, len(renewed))
        for start in range(0, len(renewed), at_once):
            name = job_name(len(plan.jobs) + len(jobs) + 1, place, plan.places)
            part = renewed[start : start + at_once]
            jobs.append(new_job(name, place, plan.memory_limit(place), limit_of_more(plan, len(part)), part))
    numbers = ", ".join(str(block.block) for blocks in broken.values() for block in blocks)
    return PlanAddition(created_at=created_at, reason=f"resume: replaces broken block {numbers}", jobs=jobs)
