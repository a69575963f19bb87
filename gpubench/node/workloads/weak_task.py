"""What dask-bench's weak-scaling tasks have in common: what is timed, and figures to check a result by.

They are sized by threads, have other numbers in every repetition, and are checked by figures of ``weak_data``.
"""

import abc
import contextlib
import math
import time
from typing import Any, Callable, Dict, List, Tuple

import distributed

from gpubench.node.workloads import device
from gpubench.node.workloads.base import Answer, Measurement, WorkloadContext, judged
from gpubench.node.workloads.weak_data import UPPER

TOLERANCE = 1e-9
"""Of deviations and means, relative: float64 against exact integers."""
SIGMAS = 6.0
LEAST = 2
"""Of one number there is no deviation."""
MEAN = (UPPER - 1) / 2
DEVIATION = ((UPPER**2 - 1) / 12) ** 0.5
"""Of uniform integers 0 … UPPER − 1."""


class WeakTask(Measurement):
    """One task. ``prepare`` makes the input, ``operation`` is timed, ``seen`` turns its result into an answer."""

    lazy: Callable[[Any], Any]
    """From the input to the collection that the task is about."""
    is_kept = False
    """Whether the result stays on the workers, instead of being fetched: as in the original."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.threads = len(context.workers) * context.threads_per_worker
        """Of all workers: what dask-bench calls n."""
        self.problem_size = int(params["problem_size"])
        """Per thread, or per square root of threads."""
        self.is_persisted = params.get("mode") == "persisted"
        """The input lies in fixed places before the clock."""

    @property
    def entropy(self) -> Tuple[int, int]:
        return self.context.seed, self._round

    def setup(self) -> None:
        if self.problem_size < LEAST:
            raise ValueError(f"weak scaling needs a problem_size of at least {LEAST}, not {self.problem_size}")

    @abc.abstractmethod
    def input(self) -> Any:
        """The collection that the task works on."""

    def operation(self, data: Any) -> Any:
        """The timed thing, from the graph to the end of waiting; parts are put together as ``compute`` does it."""
        if self.is_kept:
            return self.persisted(self.lazy(data))
        return self.lazy(data).compute(scheduler=self.context.client.get)

    seen: Callable[[Any], Any]
    """From the result of ``operation`` to what ``check`` compares; after the clock."""

    def prepare(self) -> None:
        self.teardown()
        self._round += 1
        self._data = self.input()

    def once(self) -> Tuple[float, Any]:
        """What stood between two yields in the original: building the graph, and persisting or computing it."""
        with self.settings():
            start = time.perf_counter()
            result = self.operation(self._data)
            device.synchronize_workers(self.context.client, self.context.device)
            seconds = time.perf_counter() - start
        return seconds, self.seen(result)

    def settings(self) -> Any:
        return contextlib.nullcontext()

    def persisted(self, collection: Any) -> Any:
        held = self.context.client.persist(collection)
        distributed.wait(held)
        return held

    def on_workers(self, function: Any, *arguments: Any) -> List[Any]:
        """``function`` of each row of ``arguments`` (sequences of one length), somewhere on the cluster."""
        client = self.context.client
        gathered: List[Any] = client.gather(client.map(function, *arguments, pure=False))
        return gathered


def exactly(figures: List[int], expected: List[int]) -> Answer:
    return judged(figures == expected, {"figures": figures, "expected": expected})


def exactly_and_likely(figures: List[int], expected: List[int], count: int, total: int) -> Answer:
    """Figures against figures, and the mean of ``count`` drawn numbers against the distribution's."""
    answer = exactly(figures, expected)
    sigmas = abs(total / count - MEAN) / DEVIATION * count**0.5
    is_ok = answer.status == "ok" and sigmas <= SIGMAS
    return judged(is_ok, {**answer.details, "sigmas": round(sigmas, 3)})


def close(numbers: List[float], expected: List[float]) -> Answer:
    """As many numbers, each as it should be to within the tolerance (and none NaN)."""
    # `not … <=` rather than `>`: NaN is never close.
    pairs = list(zip(numbers, expected))
    wrong = [pair for pair in pairs if not abs(pair[0] - pair[1]) <= TOLERANCE * abs(pair[1])]
    details: Dict[str, Any] = {"numbers": len(numbers), "expected_numbers": len(expected), "wrong": len(wrong)}
    if pairs:
        details["example"], details["expected_example"] = (wrong or pairs)[0]
    return judged(not wrong and len(numbers) == len(expected), details)


def deviation(count: int, total: int, squares: int, *, sample: bool) -> float:
    """Standard deviation from exact integer sums; ``sample``: divided by count − 1, as dataframes do it."""
    variance = (count * squares - total * total) / (count * (count - 1 if sample else count))
    return math.sqrt(variance)


def plus_one(data: Any) -> Any:
    return data + 1
