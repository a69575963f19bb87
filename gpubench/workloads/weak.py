"""What dask-bench's tasks share: sized by threads, other numbers in every repetition, a check on the kept result."""

import abc
import contextlib
import math
import time
import uuid
from typing import Any, Dict, List, Tuple

import distributed

from gpubench.workloads import device
from gpubench.workloads.base import Answer, Measurement, WorkloadContext
from gpubench.workloads.weak_data import UPPER

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

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._token = uuid.uuid4().hex[:8]
        self._round = 0
        self._data: Any = None

    @property
    def threads(self) -> int:
        """Of all workers: what dask-bench calls n."""
        return len(self.context.workers) * self.context.threads_per_worker

    @property
    def problem_size(self) -> int:
        """Per thread, or per square root of threads."""
        return int(self.params["problem_size"])

    @property
    def is_persisted(self) -> bool:
        """The input lies in fixed places before the clock."""
        return self.params.get("mode") == "persisted"

    @property
    def name(self) -> str:
        """Of this repetition's input: no other collection has it."""
        return f"{type(self).__name__}-{self._token}-{self._round}"

    @property
    def entropy(self) -> Tuple[int, int]:
        """Of this repetition's numbers."""
        return self.context.seed, self._round

    def setup(self) -> None:
        """Is there something to work on?

        Raises:
            ValueError: no.
        """
        if self.problem_size < LEAST:
            raise ValueError(f"weak scaling needs a problem_size of at least {LEAST}, not {self.problem_size}")

    @abc.abstractmethod
    def input(self) -> Any:
        """The collection that the task works on."""

    @abc.abstractmethod
    def operation(self, data: Any) -> Any:
        """The timed thing, from the graph to the end of waiting."""

    @abc.abstractmethod
    def seen(self, result: Any) -> Any:
        """From the result of ``operation`` to what ``check`` compares; after the clock."""

    def prepare(self) -> None:
        """Make the next input."""
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
        """A context in which the operation runs."""
        return contextlib.nullcontext()

    def persisted(self, collection: Any) -> Any:
        """``collection.persist()``, waiting."""
        held = self.context.client.persist(collection)
        distributed.wait(held)
        return held

    def computed(self, collection: Any) -> Any:
        """``collection.compute()`` on our cluster: parts are put together as that does it."""
        return collection.compute(scheduler=self.context.client.get)

    def on_workers(self, function: Any, *arguments: Any) -> List[Any]:
        """``function`` of each row of ``arguments`` (sequences of one length), somewhere on the cluster."""
        client = self.context.client
        gathered: List[Any] = client.gather(client.map(function, *arguments, pure=False))
        return gathered

    def teardown(self) -> None:
        """Drop the input."""
        self._data = None


def exactly(found: List[int], expected: List[int]) -> Answer:
    """Figures against figures."""
    return Answer("ok" if found == expected else "wrong", {"figures": found, "expected": expected})


def exactly_and_likely(found: List[int], expected: List[int], count: int, total: int) -> Answer:
    """Figures against figures, and the mean of ``count`` drawn numbers against the distribution's."""
    answer = exactly(found, expected)
    sigmas = abs(total / count - MEAN) / DEVIATION * count**0.5
    is_ok = answer.status == "ok" and sigmas <= SIGMAS
    return Answer("ok" if is_ok else "wrong", {**answer.details, "sigmas": round(sigmas, 3)})


def close(found: List[float], expected: List[float]) -> Answer:
    """As many numbers, each as it should be to within the tolerance (and none NaN)."""
    # `not … <=` rather than `>`: NaN is never close.
    pairs = list(zip(found, expected))
    wrong = [pair for pair in pairs if not abs(pair[0] - pair[1]) <= TOLERANCE * abs(pair[1])]
    details: Dict[str, Any] = {"numbers": len(found), "expected_numbers": len(expected), "wrong": len(wrong)}
    if pairs:
        details["example"], details["expected_example"] = (wrong or pairs)[0]
    return Answer("ok" if not wrong and len(found) == len(expected) else "wrong", details)


def deviation(count: int, total: int, squares: int, *, sample: bool) -> float:
    """Standard deviation from exact integer sums; ``sample``: divided by count − 1, as dataframes do it."""
    variance = (count * squares - total * total) / (count * (count - 1 if sample else count))
    return math.sqrt(variance)
