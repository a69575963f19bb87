"""Tasks that do nothing: what the scheduler and its messages cost."""

import time
from typing import Any, List, Tuple

from gpubench.workloads.base import Answer, Measurement

RESULT = 7


def seven(_number: int) -> int:
    """The task."""
    return RESULT


class Tasks(Measurement):
    """Many small messages between client, scheduler and workers, none between workers."""

    uses_transfer_log = False

    @property
    def nominal_bytes(self) -> int:
        """None: what counts is tasks per second."""
        return 0

    @property
    def least_moved_bytes(self) -> int:
        """Tasks don't depend on each other."""
        return 0

    def prepare(self) -> None:
        """Nothing to generate."""

    def once(self) -> Tuple[float, List[Any]]:
        """Submit, wait, gather."""
        client = self.context.client
        start = time.perf_counter()
        results = client.gather(client.map(seven, range(int(self.params["count"])), pure=False))
        return time.perf_counter() - start, results

    def check(self, answer: List[Any]) -> Answer:
        """As many results as tasks, all right."""
        wrong = sum(1 for result in answer if result != RESULT)
        is_ok = len(answer) == self.params["count"] and not wrong
        details = {"results": len(answer), "expected": self.params["count"], "wrong": wrong}
        return Answer("ok" if is_ok else "wrong", details)

    def teardown(self) -> None:
        """``once`` keeps no future."""
