"""What a campaign costs, by place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gpubench.model.plan import Plan


@dataclasses.dataclass(frozen=True)
class Cost:
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


def node_hours(plan: Plan) -> Iterator[Cost]:
    """A row per place, ascending."""
    for place in plan.places:
        jobs = [job for job in plan.jobs if job.place == place]
        runs = sum(
            not plan.skip_reason(place[0], run.variant) for job in jobs for block in job.blocks for run in block.runs
        )
        yield Cost(*place, len(jobs), runs, runs * plan.time.run_s)
