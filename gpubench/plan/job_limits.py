"""The time limit of a job, and how many blocks it surely holds.

The limit comes from the estimate of the job's blocks, so that a queue can start it early; or from the profile.
"""

import math
from collections.abc import Iterable

from gpubench.errors import PlanRefusedError
from gpubench.launchers import LAUNCHERS
from gpubench.model.plan import Plan
from gpubench.model.quantities import format_seconds
from gpubench.model.site import Site
from gpubench.plan.block_design import SAFETY


def blocks_of_a_job(site: Site, block_s: float) -> int:
    """As many blocks of ``block_s`` seconds as a job's time limit surely holds, or fewer if its launcher takes fewer.

    Raises:
        PlanRefusedError: it doesn't surely hold one.
    """
    fitting = int(site.limits.job // (block_s * SAFETY))
    if fitting < 1:
        raise PlanRefusedError(
            f"a block may take {format_seconds(block_s * SAFETY)}, a job at most {format_seconds(site.limits.job)}",
            then=(
                "raise limits.job of the site (--set limits.job=..., as far as its queue allows), "
                "or take fewer variants, workloads or --reps"
            ),
        )
    return 1 if LAUNCHERS[site.launcher].has_one_block else fitting


MEASURED, GUESSED = 3, 8
"""How many times the estimate a job may take: where runs were timed, and where the profile guesses."""


def job_limit(site: Site, seconds: float, timeouts: Iterable[float], *, measured: bool) -> float:
    """Seconds: the profile's where it sets ``limits.job``, else by what the job's blocks take.

    Args:
        seconds: of all its blocks, from the time model.
        timeouts: seconds that each workload may take: a job lasts as long as one run may.
        measured: whether the time model rests on runs that were timed here.
    """
    if "job" in site.limits.model_fields_set:
        return site.limits.job
    return _limit(site, max(sum(timeouts), seconds * (MEASURED if measured else GUESSED)))


def limit_of_more(plan: Plan, blocks: int) -> float:
    """Of a job that is added to a plan: the profile's, or as long for each block as the plan's own jobs have."""
    longest = plan.site.limits.job
    if all(job.limit_s == longest for job in plan.jobs):
        return longest
    block_s = max(job.limit_s / len(job.blocks) for job in plan.jobs)
    return _limit(plan.site, max(sum(item.timeout_s for item in plan.workloads), block_s * blocks))


def _limit(site: Site, needed_s: float) -> float:
    """Seconds, in whole minutes: what is needed, and a start and an end; at most ``limits.job``."""
    return min(site.limits.job, 60.0 * math.ceil((needed_s + site.limits.start + site.limits.stop) / 60))
