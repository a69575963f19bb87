"""The array sums: one timed reduction, two oracles.

The sums differ in the numbers they draw, the operation, and what must move.
"""

import abc
import math
from typing import Any, Callable, Dict, Tuple

import dask.array
import numpy as np

from gpubench.node.workloads import dask_compat
from gpubench.node.workloads.base import Answer, WorkloadContext, judged, partials_moved
from gpubench.node.workloads.lazy import LazyMeasurement
from gpubench.node.workloads.random_blocks import (
    ITEM_BYTES,
    array_of_blocks,
    drawn,
    mirrored_bytes,
    normal,
    settled,
    uniform,
)

SIGMAS = 6.0
"""A right sum lies outside once in 5·10⁸ repetitions."""
ROUNDING = 1e-9
"""Two orders of adding up 10¹⁰ float64 of one sign differ by far less, relative to the sum."""


def scaled(block: Any, factor: float) -> Any:
    return block * factor


class ArraySum(LazyMeasurement):
    """The sum of a square of float64 random numbers, (size, size) in (chunk, chunk) blocks, somehow transformed."""

    draw: Any
    """Importable function (device, entropy, shape) → block; each worker draws its own."""
    operation: Callable[[Any], Any]
    """From the array to the lazy scalar that is timed."""
    _graph: Any = None
    _original: Any = None
    _factor = 1.0
    _reference = 0.0

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.size = int(params["size"])
        """Rows and columns."""

    @property
    def nominal_bytes(self) -> int:
        return self.size * self.size * ITEM_BYTES

    @abc.abstractmethod
    def reference(self, data: Any) -> Any:
        """The same value as a lazy scalar by another way, computed outside of the clock."""

    @abc.abstractmethod
    def moments(self) -> Tuple[float, float]:
        """Expectation and standard deviation of the answer over all random arrays."""

    @property
    def is_settled(self) -> bool:
        """Whether the blocks lie on their workers before the clock starts."""
        return True

    @property
    def constant(self) -> float:
        """The answer where all numbers are 0; beside that it is proportional to them."""
        return 0.0

    def _drawn(self) -> Any:
        chunks = dask.array.core.normalize_chunks(int(self.params["chunk"]), (self.size, self.size))
        return drawn(
            self.context,
            self.name,
            type(self).draw,
            (self.context.seed, self._round),
            chunks,
            is_settled=self.is_settled,
        )

    def prepare(self) -> None:
        """Make the next array and build the graph of what will be timed.

        Other numbers than before, so that an old answer is a wrong one: drawn anew, or the original's times a factor.
        """
        self._data = self._graph = None
        self._round += 1
        self._data = self._scaled() if self.keeps_originals and self.is_settled else self._drawn()
        self._graph = self.operation(self._data)

    def _scaled(self) -> Any:
        if self._original is None:
            self._original = self._drawn()
            self._reference = float(self.context.client.compute(self.reference(self._original)).result())
        original, name = self._original, f"{self.name}-scaled"
        self._factor = 1.0 + self._round / 1024
        held = dask_compat.block_futures(self.context.client, original)
        blocks = {
            (name, i, j): (scaled, held[str((original.name, i, j))], self._factor)
            for i, j in np.ndindex(*original.numblocks)
        }
        return array_of_blocks(self.context, name, settled(self.context, blocks), original.chunks, str(original.dtype))

    def lazy(self) -> Any:
        return self._graph

    def once(self) -> Tuple[float, Any]:
        """The scalar is fetched by ``check``."""
        return self.persisted()

    def check(self, held: Any) -> Answer:
        client, scale = self.context.client, self._factor
        if self._original is None:
            answer, reference = map(float, client.gather(client.compute([held, self.reference(self._data)])))
        else:
            answer = float(client.compute(held).result())
            reference = scale * (self._reference - self.constant) + self.constant
        mean, deviation = self.moments()
        mean, deviation = scale * (mean - self.constant) + self.constant, scale * deviation
        sigmas = abs(answer - mean) / deviation
        is_ok = abs(answer - reference) <= ROUNDING * abs(reference) and sigmas <= SIGMAS
        details = {"answer": answer, "reference": reference, "expected": mean, "sigmas": round(sigmas, 3)}
        return judged(is_ok, details)

    def block_holders(self) -> Dict[str, Any]:
        return dask_compat.holders(self.context.client, self._data)

    def teardown(self) -> None:
        self._data = self._graph = self._original = None


class TransposeSum(ArraySum):
    """``(x + x.T).sum()``, x uniform on [0, 1): dask-cuda's ``local_cupy -o transpose_sum``.

    Every block off the diagonal meets its mirror image, so up to half of the array must move.
    """

    draw = staticmethod(uniform)
    operation = staticmethod(lambda x: (x + x.T).sum())

    def reference(self, data: Any) -> Any:
        """Without the transpose, so without traffic."""
        return 2.0 * data.sum()

    def moments(self) -> Tuple[float, float]:
        """size², and the deviation 2 · √(size² / 12) of twice a sum of size² uniform numbers."""
        return float(self.size**2), 2.0 * self.size * math.sqrt(1.0 / 12.0)

    @property
    def least_moved_bytes(self) -> int:
        return mirrored_bytes(self._data, self.block_holders())


class StridedSum(ArraySum):
    """``((x + 1)[::2, ::2]).sum()``, x normal around 10 with deviation 1: DeepOps' ``sum.py``.

    Hardly moves anything: the workload that shows what a change of the communication library can *not* explain.
    """

    draw = staticmethod(normal)
    operation = staticmethod(lambda x: (x + 1.0)[::2, ::2].sum())

    @property
    def count(self) -> int:
        return math.ceil(self.size / 2) ** 2

    @property
    def is_settled(self) -> bool:
        """DeepOps times drawing and adding up together; here that is a choice."""
        return not self.params["generate"]

    @property
    def constant(self) -> float:
        return float(self.count)

    def reference(self, data: Any) -> Any:
        """The ones are added to the sum instead of the elements; numbers not kept are drawn again from their seeds."""
        return data[::2, ::2].sum() + float(self.count)

    def moments(self) -> Tuple[float, float]:
        """11 · count, √count."""
        return 11.0 * self.count, math.sqrt(self.count)

    @property
    def least_moved_bytes(self) -> int:
        """Partial sums; nothing is sure if the blocks are not yet drawn."""
        if self.params["generate"]:
            return 0
        return ITEM_BYTES * partials_moved(self.block_holders().values())
