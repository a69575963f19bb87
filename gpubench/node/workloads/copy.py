"""How fast each worker's memory copies: what no operation on arrays in it can exceed by its bytes."""

import time
from typing import Any, Dict, List, Tuple

import numpy as np

from gpubench.node.workloads import device
from gpubench.node.workloads.base import Answer, Measurement, WorkloadContext, judged
from gpubench.node.workloads.random_blocks import ITEM_BYTES

_PAIRS: Dict[str, Tuple[Any, Any]] = {}
"""In a worker: source and target, by the token of the measurement that made them."""


def fill(token: str, items: int, start: int, kind: str) -> None:
    """Numbers from ``start`` on in the source, and none of them in the target."""
    module = device.array_module(kind)
    source, target = _PAIRS.setdefault(token, (module.empty(items), module.empty(items)))
    source[...] = module.arange(start, start + items, dtype="float64")
    target[...] = -1.0
    if kind == "gpu":
        device.synchronize()


def copy(token: str, times: int, kind: str) -> float:
    """Copy so many times; the seconds."""
    source, target = _PAIRS[token]
    module = device.array_module(kind)
    start = time.perf_counter()
    for _ in range(times):
        module.copyto(target, source)
    if kind == "gpu":
        device.synchronize()
    return time.perf_counter() - start


def wrong_items(token: str, start: int, kind: str) -> int:
    _, target = _PAIRS[token]
    expected = device.array_module(kind).arange(start, start + len(target), dtype="float64")
    return int(np.count_nonzero(device.host(kind, target != expected)))


def free(token: str) -> None:
    _PAIRS.pop(token, None)


class Copy(Measurement):
    """Every worker copies in its own memory, all at the same time; the seconds of the slowest count."""

    uses_transfer_log = False

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._items = max(1, int(params["size"]) // ITEM_BYTES)

    @property
    def nominal_bytes(self) -> int:
        """Read and written, by all workers."""
        return 2 * self._items * ITEM_BYTES * int(self.params["times"]) * len(self.context.workers)

    def prepare(self) -> None:
        self._round += 1
        self.context.client.run(fill, self._token, self._items, self._round, self.context.device)

    def once(self) -> Tuple[float, List[float]]:
        taken = self.context.client.run(copy, self._token, int(self.params["times"]), self.context.device)
        return max(taken.values()), sorted(taken.values())

    def check(self, answer: List[float]) -> Answer:
        wrong = sum(self.context.client.run(wrong_items, self._token, self._round, self.context.device).values())
        is_ok = not wrong and len(answer) == len(self.context.workers)
        return judged(is_ok, {"wrong_items": wrong, "worker_s": answer})

    def teardown(self) -> None:
        self.context.client.run(free, self._token)
