"""What is appended to a plan: blocks for broken ones, and blocks that the user asks for.

A missing run of a block is never replaced from another allocation, whose nodes and time differ.
"""

import dataclasses
import random
from collections.abc import Mapping, Sequence

from gpubench.launchers import LAUNCHERS
from gpubench.model.plan import Place, Plan, PlanAddition, PlannedBlock, PlannedJob
from gpubench.model.text import counted
from gpubench.node.spec.records import RAN
from gpubench.plan.block_design import campaign_orders, new_job, plan_block, reps_in_turns
from gpubench.plan.job_limits import blocks_of_a_job, limit_of_more


@dataclasses.dataclass(frozen=True)
class Repair:
    """``again``: blocks of which no run has finished, by job; ``addition``: whole new blocks for broken ones."""

    again: dict[str, list[int]]
    addition: PlanAddition | None


def plan_repair(plan: Plan, status: Mapping[str, str], created_at: str) -> Repair:
    """Compare the plan (with all additions) with how its runs ended.

    Args:
        plan: jobs include those of earlier additions.
        status: ``ok failed skipped lost`` by run id, of every planned run. A ``failed`` run has ended: it is a finding,
            not missing. ``skipped`` and ``lost`` runs are missing.
    """
    replaced = {block.replaces for job in plan.jobs for block in job.blocks}
    again: dict[str, list[int]] = {}
    broken: dict[Place, list[PlannedBlock]] = {}
    for job in plan.jobs:
        for block in job.blocks:
            # What is planned to be skipped is no hole.
            planned = [run for run in block.runs if not plan.skip_reason(job.nodes, run.variant)]
            ended = [status.get(run.run, "lost") in RAN for run in planned]
            if all(ended) or block.block in replaced:
                continue
            if any(ended):
                broken.setdefault(job.place, []).append(block)
            else:
                again.setdefault(job.job, []).append(block.block)
    return Repair(again=again, addition=_addition(plan, broken, created_at) if broken else None)


class _Appended:
    """Jobs that are appended to a plan; the numbers of their blocks continue from its last."""

    def __init__(self, plan: Plan) -> None:
        self.jobs: list[PlannedJob] = []
        self._plan = plan
        self._number = max(block.block for job in plan.jobs for block in job.blocks)
        self._rng = random.Random(f"{plan.seed}:{self._number}")  # noqa: S311 - repeatable

    def block(
        self, place: Place, order: Sequence[str], like: PlannedBlock, replaces: int | None = None
    ) -> PlannedBlock:
        """The next block, with the workloads of one that is planned."""
        self._number += 1
        taken = set(like.runs[0].workloads)
        return plan_block(
            self._plan.campaign,
            number=self._number,
            place=place,
            order=order,
            workloads=[item.params_id for item in self._plan.workloads if item.params_id in taken],
            rng=self._rng,
            replaces=replaces,
            reps=reps_in_turns(self._plan),
        )

    def add_jobs(self, place: Place, blocks: list[PlannedBlock], per_job: int) -> None:
        """The next jobs, with so many of these blocks each."""
        plan = self._plan
        for start in range(0, len(blocks), per_job):
            some = blocks[start : start + per_job]
            number = len(plan.jobs) + len(self.jobs) + 1
            memory_limit, limit_s = plan.memory_limit(place), limit_of_more(plan, len(some))
            job = new_job(number, place, plan.places, memory_limit=memory_limit, limit_s=limit_s, blocks=some)
            self.jobs.append(job)


def _addition(plan: Plan, broken: Mapping[Place, list[PlannedBlock]], created_at: str) -> PlanAddition:
    appended = _Appended(plan)
    for place, blocks in broken.items():
        # The same orders keep the whole balanced.
        renewed = [appended.block(place, [run.variant for run in old.runs], old, old.block) for old in blocks]
        appended.add_jobs(place, renewed, 1 if LAUNCHERS[plan.site.launcher].has_one_block else len(renewed))
    numbers = ", ".join(str(block.block) for blocks in broken.values() for block in blocks)
    return PlanAddition(created_at=created_at, reason=f"resume: replaces broken block {numbers}", jobs=appended.jobs)


def _blocks_at(plan: Plan, place: Place) -> int:
    """Blocks at one place; one that replaces a broken block counts once with it."""
    return sum(block.replaces is None for job in plan.jobs if job.place == place for block in job.blocks)


def plan_more(plan: Plan, count: int, created_at: str) -> PlanAddition:
    """``count`` blocks more at each place, as many to a job as its time limit surely holds.

    Args:
        plan: its jobs include those of earlier additions.
        count: blocks per place.
    """
    appended = _Appended(plan)
    labels = [variant.label for variant in plan.variants]
    per_job = blocks_of_a_job(plan.site, plan.time.block_s)
    for place in plan.places:
        have = _blocks_at(plan, place)
        first = next(block for job in plan.jobs if job.place == place for block in job.blocks)
        # The orders go on where those of the plan stopped, so that the whole stays balanced.
        orders = campaign_orders(plan.seed, place, len(labels), have + count)[have:]
        added = [appended.block(place, [labels[at] for at in order], first) for order in orders]
        appended.add_jobs(place, added, per_job)
    at = ", ".join(str(_blocks_at(plan, place)) for place in plan.places)
    reason = f"{counted(count, 'more block')} after {at}"
    return PlanAddition(created_at=created_at, reason=reason, jobs=appended.jobs)
