"""Time: what a campaign costs, how many blocks a budget holds, and how often a run repeats each workload to fill it."""

import dataclasses
import math
from collections.abc import Iterator, Mapping

from gpubench.errors import PlanRefusedError
from gpubench.model.plan import Plan
from gpubench.model.quantities import format_seconds
from gpubench.model.text import counted


@dataclasses.dataclass(frozen=True)
class PlaceCost:
    """At one place: ``runs`` that really run, their ``seconds`` by the time model, and nodes times hours."""

    nodes: int
    workers_per_node: int
    jobs: int
    runs: int
    seconds: float

    @property
    def node_hours(self) -> float:
        """Nodes times hours; waiting in the queue is free."""
        return self.nodes * self.seconds / 3600


def node_hours(plan: Plan) -> Iterator[PlaceCost]:
    """A row per place, ascending."""
    for place in plan.places:
        jobs = [job for job in plan.jobs if job.place == place]
        runs = sum(
            not plan.skip_reason(place[0], run.variant) for job in jobs for block in job.blocks for run in block.runs
        )
        yield PlaceCost(*place, len(jobs), runs, runs * plan.time.run_s)


LEAST_BLOCKS = 5


def fewest_blocks(variants: int) -> int:
    """The fewest blocks that are a multiple of the number of variants and at least five."""
    return -(-LEAST_BLOCKS // variants) * variants


def blocks_that_fit(
    *, requested: int, variants: int, all_places_block_s: float, budget_s: float, firm: bool, spent_s: float = 0.0
) -> int:
    """The most blocks ≤ ``requested`` that fit, at least five; fewer where fewer are requested.

    In multiples of the number of variants, so that each stands first about equally often.

    Args:
        requested: blocks per place.
        variants: how many.
        all_places_block_s: seconds of one block at every place (nodes x workers per node) together.
        budget_s: seconds that are left of the budget.
        spent_s: seconds of it that are gone.
        firm: the user gave the budget; else it is the site's default, which the fewest useful blocks may exceed.

    Raises:
        PlanRefusedError: a firm budget holds fewer than the least.
    """
    least = min(fewest_blocks(variants), requested)
    most = max(least, requested // variants * variants)
    holds = int(budget_s // all_places_block_s)
    if (holds + 1) * all_places_block_s <= budget_s:  # 1.0 // 0.2 is 4: one more than the division says fits exactly
        holds += 1
    if holds >= least:
        return min(max(least, holds // variants * variants), most)
    if firm:
        needed = least * all_places_block_s
        of = f"a budget of {format_seconds(budget_s)}"
        if spent_s:
            of = f"what the first pass left of the budget, {format_seconds(budget_s)},"
        why = "--blocks asks for" if least < fewest_blocks(variants) else f"{variants} variants need"
        raise PlanRefusedError(
            f"{of} holds {counted(holds, 'block')} of about {format_seconds(all_places_block_s)}; {why} {least} "
            f"({least} x {format_seconds(all_places_block_s)} = {format_seconds(needed)})",
            then=f"give --budget {int((needed + spent_s) // 60) + 1}m, "
            "--blocks 5 without a budget, fewer variants, fewer counts in --nodes or --workers, or a smaller --suite",
        )
    return least


MOST_TO_FILL = 40
"""A budget is filled with at most this many blocks; the remaining time goes to repetitions."""
LEAST_REPS = 4
"""Least repetitions of a workload in a run: fewer say nothing about their scatter."""
OF_LIMIT = 3.0
"""A workload is planned to take this part of its time limit at most."""
MOST_REPS = 10_000
SPARE_S = 0.01
"""Of each run's time: the plan's figures are rounded to this."""
LEAST_SCATTER = 0.01
"""Least assumed scatter: half a dozen repetitions may agree by chance."""
UNEVEN = 2.0
"""A workload gets at most so many times an equal share of the time, and at least that part of one: a scatter that was
taken from half a dozen repetitions is known to within a third or so."""


@dataclasses.dataclass(frozen=True)
class PilotWorkload:
    """One workload in the first pass.

    Args:
        cost_s: seconds of one repetition with its overhead.
        scatter: relative standard deviation of the timed seconds.
        marked: repetitions of a run that don't count.
        limit_s: seconds after which the workload fails.
    """

    cost_s: float
    scatter: float
    marked: int
    limit_s: float = math.inf

    @property
    def most(self) -> int:
        """Repetitions of a run, at most: a variant that is slower than the baseline has to end in time, too."""
        return max(LEAST_REPS, math.floor(min(self.limit_s / OF_LIMIT / self.cost_s - self.marked, MOST_REPS)))


@dataclasses.dataclass(frozen=True)
class FirstPass:
    """A run of the baseline with a few repetitions, before the plan is made.

    Args:
        fixed_s: seconds of a run of the campaign outside all repetitions: start, end, and pauses between workloads.
        tried: by ``params_id``.
    """

    campaign: str
    seconds: float
    fixed_s: float
    tried: Mapping[str, PilotWorkload]

    def run_s(self, reps: Mapping[str, int]) -> float:
        """Seconds of a run with so many timed repetitions."""
        return self.fixed_s + sum((reps[name] + trial.marked) * trial.cost_s for name, trial in self.tried.items())


def fill_budget(first: FirstPass, *, budget_s: float, blocks: int, variants: int) -> tuple[int, dict[str, int]]:
    """Blocks, and the timed repetitions of a run by ``params_id``, with which a campaign fills ``budget_s``.

    As many blocks as leave half of each run to its timed repetitions, in multiples of ``variants`` from ``blocks`` down
    to the fewest that carry a verdict: blocks average out what differs between the lives of a cluster, too. Workloads
    share the time so that the variances of their means add up to the least: each gets time in proportion to
    scatter · √cost, but for the least and the most that it may get.

    Source: optimum allocation with costs, Cochran, Sampling Techniques, 3rd ed., section 5.5.
    """
    idle_s = first.run_s(dict.fromkeys(first.tried, 0))
    least = min(fewest_blocks(variants), blocks)
    sets = range(max(least, blocks // variants * variants), least - 1, -variants)
    fill_s, held = 0.0, least
    for held in sets:
        fill_s = budget_s / (held * variants) - idle_s
        if fill_s >= max(idle_s, first.run_s(dict.fromkeys(first.tried, LEAST_REPS)) - idle_s + SPARE_S):
            break
    weights = {name: max(trial.scatter, LEAST_SCATTER) * math.sqrt(trial.cost_s) for name, trial in first.tried.items()}
    equal = sum(weights.values()) / len(weights)
    weights = {name: min(max(weight, equal / UNEVEN), equal * UNEVEN) for name, weight in weights.items()}
    chosen: dict[str, int] = {}
    while len(chosen) < len(first.tried):
        left_s = fill_s - SPARE_S - sum(reps * first.tried[name].cost_s for name, reps in chosen.items())
        share = left_s / sum(weight for name, weight in weights.items() if name not in chosen)
        shares = {
            name: math.floor(share * weights[name] / trial.cost_s)
            for name, trial in first.tried.items()
            if name not in chosen
        }
        # Those that get a bound instead of their share take from the others, or leave them more: these share again.
        bound = {name: LEAST_REPS for name, reps in shares.items() if reps < LEAST_REPS}
        bound = bound or {
            name: first.tried[name].most for name, reps in shares.items() if reps > first.tried[name].most
        }
        chosen |= bound or shares
    return held, chosen
