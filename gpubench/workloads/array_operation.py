"""What dask-cuda's array operations share: operands in fixed places, one timed persist, oracles by projection.

A matrix is checked without computing it a second time: weights · result must equal what the operation's algebra makes
of weights · operands (Freivalds, *Probabilistic machines can use less running time*, 1977). The weights are new in
every repetition, and the operands are drawn again from their seeds, so that a damaged block is noticed too.
"""

import abc
import dataclasses
import itertools
import math
import time
import uuid
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import dask
import dask.array
import distributed
import numpy as np

from gpubench.workloads import dask_compat, device
from gpubench.workloads.arrays import ITEM_BYTES, random_state
from gpubench.workloads.base import Answer, Measurement, WorkloadContext

CLOSE = 1e-9
"""Of the largest figure. Adding up n float64 in another order is off by n · 1.1e-16 at worst, by √n of that mostly."""
WEIGHTS = 97
"""Marks the random numbers that are weights; operands are marked by their position, 0 or 1."""

Place = Tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Block:
    """One block of an array: its place in the grid of blocks, first element and shape."""

    place: Place
    first: Place
    shape: Place

    def rows(self) -> slice:
        """Its part of the first axis."""
        return slice(self.first[0], self.first[0] + self.shape[0])

    def columns(self) -> slice:
        """Its part of the second axis."""
        return slice(self.first[1], self.first[1] + self.shape[1])


def blocks_of(chunks: Tuple[Tuple[int, ...], ...]) -> List[Block]:
    """All blocks in row-major order."""
    axes = [list(zip(range(len(sizes)), itertools.accumulate((0, *sizes)), sizes)) for sizes in chunks]
    return [Block(*(tuple(part[item] for part in parts) for item in range(3))) for parts in itertools.product(*axes)]


@dataclasses.dataclass(frozen=True)
class Operand:
    """Random input: ``draw`` is an importable function (device, entropy, shape) → block; 8 bytes an element."""

    draw: Callable[[str, Tuple[int, ...], Place], Any]
    shape: Place
    chunk: Place

    @property
    def chunks(self) -> Tuple[Tuple[int, ...], ...]:
        """Sizes of the blocks along every axis."""
        found: Tuple[Tuple[int, ...], ...] = dask.array.core.normalize_chunks(self.chunk, self.shape)
        return found


def normal(device_name: str, entropy: Tuple[int, ...], shape: Place) -> Any:
    """Normal(10, 1)."""
    return random_state(device_name, entropy).normal(10.0, 1.0, shape)


def projection(block: Any, weights: Any, device_name: str) -> Any:
    """``weights · block`` along the first axis, in main memory."""
    return device.host(device_name, device.array_module(device_name).asarray(weights) @ block)


def _redrawn(figure: Any, draw: Any, drawn_from: Tuple[Any, ...], extra: Tuple[Any, ...]) -> Any:
    return figure(draw(*drawn_from), *extra, drawn_from[0])


def close(found: Any, expected: Any) -> bool:
    """Whether two figures or vectors of them agree to ``CLOSE`` of the largest."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or not np.isfinite(found).all():
        return False
    return not found.size or bool(np.abs(found - expected).max() <= CLOSE * np.abs(expected).max())


def distance(found: Any, expected: Any) -> Optional[float]:
    """Largest difference of two vectors, relative to the largest figure; None where that is no number."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or not found.size:
        return None
    relative = float(np.abs(found - expected).max() / (np.abs(expected).max() or 1.0))
    return relative if math.isfinite(relative) else None


class ArrayOperation(Measurement):
    """One operation on random arrays.

    Blocks of every operand are dealt out in row-major order, an equal contiguous share to every worker in the order of
    ``context.workers``: left to itself, Dask places them by the moment's load, differently in each repetition.
    """

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._token = uuid.uuid4().hex[:8]
        self.round = 0
        self.arrays: List[Any] = []
        self._graph: List[Any] = []

    @property
    def size(self) -> int:
        """Elements along the first axis."""
        return int(self.params["size"])

    @property
    def chunk(self) -> int:
        """Elements of a block along an axis that is cut."""
        return int(self.params["chunk"])

    @abc.abstractmethod
    def operands(self) -> List[Operand]:
        """The inputs."""

    @abc.abstractmethod
    def operation(self, *arrays: Any) -> List[Any]:
        """The lazy results that are persisted inside the clock."""

    @abc.abstractmethod
    def verify(self, results: List[Any]) -> Tuple[bool, Dict[str, Any]]:
        """Whether the results are right, and the figures that say so."""

    @property
    def nominal_bytes(self) -> int:
        """Bytes of all operands."""
        return sum(math.prod(operand.shape) * ITEM_BYTES for operand in self.operands())

    @property
    def least_moved_bytes(self) -> int:
        """Nothing is sure to move, unless an operation says more."""
        return 0

    def prepare(self) -> None:
        """Draw the next operands, and build the graph of what will be timed."""
        self.teardown()
        self.round += 1
        self.arrays = [self._array(number, operand) for number, operand in enumerate(self.operands())]
        self._graph = self.operation(*self.arrays)

    def once(self) -> Tuple[float, List[Any]]:
        """Persist and wait, as dask-cuda's array benchmarks do."""
        client = self.context.client
        start = time.perf_counter()
        held = client.persist(self._graph)
        distributed.wait(held)
        device.synchronize_workers(client, self.context.device)
        return time.perf_counter() - start, list(held)

    def check(self, answer: List[Any]) -> Answer:
        """By figures of the blocks, which are taken where these lie."""
        is_ok, details = self.verify(answer)
        return Answer("ok" if is_ok else "wrong", details)

    def teardown(self) -> None:
        """Drop the operands."""
        self.arrays, self._graph = [], []

    def entropy(self, mark: int, place: Iterable[int] = ()) -> Tuple[int, ...]:
        """What the numbers of one block depend on."""
        return (self.context.seed, self.round, mark, *place)

    def weights(self, length: int) -> Any:
        """This repetition's random weights, uniform on [0.5, 1.5): none is so small that an error hides behind it."""
        seed = np.random.SeedSequence(self.entropy(WEIGHTS)).generate_state(1)[0]
        return 0.5 + np.random.RandomState(int(seed)).random_sample(length)

    def redrawn(self, number: int, figure: Any, extra: Callable[[Block], Tuple[Any, ...]]) -> List[Any]:
        """``figure(block, *extra(block), device)`` of every block of an operand, drawn again from its seed."""
        operand, client = self.operands()[number], self.context.client
        futures = [
            client.submit(
                _redrawn,
                figure,
                operand.draw,
                (self.context.device, self.entropy(number, block.place), block.shape),
                extra(block),
                pure=False,
            )
            for block in blocks_of(operand.chunks)
        ]
        return list(client.gather(futures))

    def of_blocks(self, result: Any, figure: Any, extra: Callable[[Block], Tuple[Any, ...]]) -> List[Any]:
        """``figure(block, *extra(block), device)`` of every block of a result, taken where the block lies."""
        figure = dask.delayed(figure, pure=False)
        parts = zip(result.to_delayed().ravel(), blocks_of(result.chunks))
        lazy = [figure(part, *extra(block), self.context.device) for part, block in parts]
        return list(self.context.client.gather(self.context.client.compute(lazy)))

    def projected(self, number: int, weights: Any) -> Any:
        """``weights · operand``, a vector with an element per column, from numbers drawn again."""
        operand = self.operands()[number]
        parts = self.redrawn(number, projection, lambda block: (weights[block.rows()],))
        return _by_column(parts, blocks_of(operand.chunks), operand.shape[1])

    def projected_result(self, result: Any, weights: Any) -> Any:
        """``weights · result``, a vector with an element per column."""
        parts = self.of_blocks(result, projection, lambda block: (weights[block.rows()],))
        return _by_column(parts, blocks_of(result.chunks), result.shape[1])

    def holders(self, array: Any) -> Dict[Place, List[str]]:
        """Workers that hold each block of an operand, by its place."""
        found = dask_compat.holders(self.context.client, array)
        return {block.place: found[str((array.name, *block.place))] for block in blocks_of(array.chunks)}

    def owners(self, array: Any) -> List[str]:
        """Workers that hold blocks of an operand, each block being held by one."""
        return sorted({workers[0] for workers in self.holders(array).values() if len(workers) == 1})

    def _array(self, number: int, operand: Operand) -> Any:
        name = f"{type(self).__name__}-{self._token}-{self.round}-{number}"
        workers, blocks = self.context.workers, blocks_of(operand.chunks)
        graph: Dict[Tuple[Any, ...], Any] = {}
        for position, block in enumerate(blocks):
            key = (name, *block.place)
            graph[key] = self.context.client.submit(
                operand.draw,
                self.context.device,
                self.entropy(number, block.place),
                block.shape,
                key=key,
                workers=[workers[position * len(workers) // len(blocks)]],
            )
        distributed.wait(list(graph.values()))
        meta = operand.draw(self.context.device, (0,), (0,) * len(operand.shape))
        return dask.array.Array(graph, name, operand.chunks, meta=meta)


def _by_column(parts: List[Any], blocks: List[Block], columns: int) -> Any:
    total = np.zeros(columns, dtype=np.result_type(*parts))
    for part, block in zip(parts, blocks):
        total[block.columns()] += part
    return total
