"""Tasks that do nothing, through a Dask client."""

import time
from typing import Any, Dict, Mapping

from gpubench.workloads import dask_compat
from gpubench.workloads.task_batches import TaskBatch, counted

RESULT = 7


def seven(_argument: Any) -> int:
    """The task."""
    return RESULT


class DaskSubmitter:
    """Batches through one ``distributed.Client``.

    Tasks are submitted by one ``client.map``, as a Dask user does, and their results gathered. The clock stops when
    the results are there, so it holds the gathering too. With ``argsize`` every task has a string of its own of as many
    bytes: Dask pickles a graph as a whole, and would send one string that all tasks share only once.
    """

    about: Dict[str, Any] = {}  # noqa: RUF012 - the run's provenance knows all of Dask

    def __init__(self, client: Any, argsize: int) -> None:
        self.client = client
        self.argsize = argsize

    def batch(self, count: int) -> TaskBatch:
        """Submit, wait, gather."""
        arguments = [f"{number:0{self.argsize}d}" for number in range(count)] if self.argsize else range(count)
        with dask_compat.finish_times(self.client) as finished:
            start = time.perf_counter()
            futures = self.client.map(seven, arguments, pure=False)
            submitted = time.perf_counter()
            results = self.client.gather(futures)
            end = time.perf_counter()
        latencies = [finished[future.key] - start for future in futures if future.key in finished]
        return TaskBatch(count, start, submitted, end, counted(results), latencies)

    def close(self) -> None:
        """``batch`` keeps no future."""


class OwnClient(DaskSubmitter):
    """The same, with a client of its own: what a further submitting process does."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        from distributed import Client

        super().__init__(Client(facts["scheduler"], set_as_default=False), int(facts["argsize"]))

    def close(self) -> None:
        """Say good-bye to the scheduler."""
        self.client.close()


def facts(context: Any, argsize: int) -> Dict[str, Any]:
    """What ``OwnClient`` has to know."""
    return {"scheduler": context.client.scheduler.address, "argsize": argsize}
