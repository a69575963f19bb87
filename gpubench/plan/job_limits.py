"""The time limit of a job: from the estimate of its blocks, so that a queue can start it early; or the profile's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpubench.model.plan import Plan, PlannedJob
from gpubench.model.site import Site

MEASURED, GUESSED = 3, 8
"""How many times the estimate a job may take: where runs were timed, and where the profile guesses."""


def with_limits(
    jobs: Sequence[PlannedJob], site: Site, block_s: float, timeouts: Iterable[float], *, measured: bool
) -> list[PlannedJob]:
    """The jobs, each with a limit by its number of blocks; as they are where the profile sets ``limits.job``.

    Args:
        jobs: each has the profile's limit.
        block_s: seconds of one block, from the time model.
        timeouts: seconds that each workload may take: a job lasts as long as one run may.
        measured: whether the time model rests on runs that were timed here.
    """
    if "job" in site.limits.model_fields_set:
        return [*jobs]
    each, least = block_s * (MEASURED if measured else GUESSED), sum(timeouts)
    return [job.model_copy(update={"limit_s": _limit(site, max(least, each * len(job.blocks)))}) for job in jobs]


def limit_of_more(plan: Plan, blocks: int) -> float:
    """Of a job that is added to a plan: the profile's, or as long for each block as the plan's own jobs have."""
    longest = plan.site.limits.job
    if all(job.limit_s == longest for job in plan.jobs):
        return longest
    each = max(job.limit_s / len(job.blocks) for job in plan.jobs)
    return _limit(plan.site, max(sum(item.timeout_s for item in plan.workloads), each * blocks))


def _limit(site: Site, needed_s: float) -> float:
    """Seconds, in whole minutes: what is needed, and a start and an end; at most ``limits.job``."""
    return min(site.limits.job, 60.0 * math.ceil((needed_s + site.limits.start + site.limits.stop) / 60))
