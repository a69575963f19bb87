"""The time that a user gave a campaign, while it runs."""

import dataclasses
import time

from gpubench.model.plan import Plan


@dataclasses.dataclass
class Budget:
    """Seconds in which blocks have to end, from the moment when the first job has the machine.

    A queue decides when a job starts, so each job has a part of the budget, counted from its own start.
    """

    seconds: float
    began: float | None = None

    def part(self, plan: Plan, blocks: int) -> float:
        """Seconds of a job of so many blocks, of all that ``plan`` has."""
        return self.seconds * blocks / sum(len(job.blocks) for job in plan.jobs)

    def left(self) -> float:
        """Seconds from now on."""
        self.began = time.monotonic() if self.began is None else self.began
        return self.seconds - (time.monotonic() - self.began)
