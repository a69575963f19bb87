"""dask-cuda's ``local_cupy`` on matrices and columns, and its mean filter, ``local_cupy_map_overlap``.

All have operands in fixed places, one timed persist, and oracles by projection.

A matrix is checked without computing it a second time: weights · result must equal what the operation's algebra makes
of weights · operands (Freivalds, *Probabilistic machines can use less running time*, 1977). The weights are new in
every repetition, and the operands are drawn again from their seeds, so that a damaged block is noticed too.
"""

import dataclasses
import itertools
import math
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import dask
import dask.array
import distributed
import numpy as np

from gpubench.node.workloads import dask_compat, device
from gpubench.node.workloads.arrays import SIGMAS
from gpubench.node.workloads.base import Answer, WorkloadContext, judged
from gpubench.node.workloads.lazy import LazyMeasurement
from gpubench.node.workloads.random_blocks import ITEM_BYTES, normal, random_state, uniform

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


Extra = Callable[[Block], Tuple[Any, ...]]
Input = Tuple[Callable[[str, Tuple[int, ...], Place], Any], Tuple[str, ...], Tuple[str, ...]]
"""How an operand is drawn, and the parameters that hold its shape and that of its blocks."""
SQUARE: Input = (uniform, ("size", "size"), ("chunk", "chunk"))
COLUMN: Input = (normal, ("size",), ("chunk",))


class ArrayOperation(LazyMeasurement):
    """One operation on random arrays, whose blocks are ``placed`` in row-major order."""

    inputs: Sequence[Input]
    operation: Callable[..., List[Any]]
    """From the operands to the lazy results that are persisted inside the clock."""
    _graph: Any = None

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.arrays: List[Any] = []
        self.size = int(params["size"])
        """Elements along the first axis."""

    def operands(self) -> List[Operand]:
        """The inputs, as large as the parameters say."""
        return [
            Operand(draw, *(tuple(int(self.params[name]) for name in names) for names in (shape, chunk)))
            for draw, shape, chunk in self.inputs
        ]

    @property
    def nominal_bytes(self) -> int:
        """Bytes of all operands."""
        return sum(math.prod(operand.shape) * ITEM_BYTES for operand in self.operands())

    def prepare(self) -> None:
        """Draw the next operands, and build the graph of what will be timed."""
        self.teardown()
        self._round += 1
        self.arrays = [self._array(number, operand) for number, operand in enumerate(self.operands())]
        self._graph = self.operation(*self.arrays)

    def lazy(self) -> Any:
        """Built before the clock."""
        return self._graph

    def once(self) -> Tuple[float, List[Any]]:
        """As dask-cuda's array benchmarks; figures of the blocks are taken by ``check``, where these lie."""
        seconds, held = self.persisted()
        return seconds, list(held)

    def teardown(self) -> None:
        """Drop the operands."""
        self.arrays, self._graph = [], None

    def entropy(self, mark: int, place: Iterable[int] = ()) -> Tuple[int, ...]:
        """What the numbers of one block depend on."""
        return (self.context.seed, self._round, mark, *place)

    def weights(self, length: int) -> Any:
        """This repetition's random weights, uniform on [0.5, 1.5): none is so small that an error hides behind it."""
        seed = np.random.SeedSequence(self.entropy(WEIGHTS)).generate_state(1)[0]
        return 0.5 + np.random.RandomState(int(seed)).random_sample(length)

    def redrawn(self, number: int, figure: Any, extra: Extra = lambda _block: ()) -> List[Any]:
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

    def of_blocks(self, result: Any, figure: Any, extra: Extra = lambda _block: ()) -> List[Any]:
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
        name, device_name = f"{self.name}-{number}", self.context.device
        graph = self.context.placed(
            {
                (name, *block.place): (operand.draw, device_name, self.entropy(number, block.place), block.shape)
                for block in blocks_of(operand.chunks)
            }
        )
        distributed.wait(list(graph.values()))
        meta = operand.draw(device_name, (0,), (0,) * len(operand.shape))
        return dask.array.Array(graph, name, operand.chunks, meta=meta)


def _by_column(parts: List[Any], blocks: List[Block], columns: int) -> Any:
    total = np.zeros(columns, dtype=np.result_type(*parts))
    for part, block in zip(parts, blocks):
        total[block.columns()] += part
    return total


def energy(block: Any, device_name: str) -> Any:
    """Sum of the squared absolute values."""
    return device.host(device_name, (abs(block) ** 2).sum())


def total(block: Any, device_name: str) -> Any:
    """Sum of all elements."""
    return device.host(device_name, block.sum())


def gram_image(block: Any, vector: Any, device_name: str) -> Any:
    """``blockᵀ · (block · vector)``."""
    return device.host(device_name, block.T @ (block @ device.array_module(device_name).asarray(vector)))


def whole(block: Any, device_name: str) -> Any:
    """The block itself, in main memory."""
    return device.host(device_name, block)


class Dot(ArrayOperation):
    """The product of two square matrices."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 2000, "text": "rows and columns of each matrix of float64"},
            "chunk": {"kind": "count", "default": 1000, "text": "rows and columns of one block"},
        },
        "held": "(5 * size**2 / workers + 2 * threads * chunk**2) * 8",
        "grows": {"size": 0.5, "chunk": 0.5},
        "source": "dask_cuda.benchmarks.local_cupy -o dot",
        "timed": "persisting the matrix product x.dot(y) of operands that lie on the workers, waiting",
        "counted": "2 × size² × 8",
        "oracle": "w·(xy) equals (w·x)·y in every column to 1e-9, w random and x, y drawn again (Freivalds)",
    }
    inputs = (SQUARE, SQUARE)
    operation = staticmethod(lambda x, y: [x.dot(y)])

    def check(self, answer: List[Any]) -> Answer:
        """w · (AB) = (w · A) · B, in n² steps instead of n³."""
        weights = self.weights(self.size)
        found = self.projected_result(answer[0], weights)
        expected = self.projected(1, self.projected(0, weights))
        return judged(close(found, expected), {"off_by": distance(found, expected), "tolerance": CLOSE})

    @property
    def least_moved_bytes(self) -> int:
        """A[i, k] must meet B[k, i]: one of them (they are equally large) for every such pair that lies apart.

        Each block is in one such pair only, so no movement is counted twice.
        """
        left, right = (self.holders(array) for array in self.arrays)
        rows, columns = self.arrays[0].chunks
        apart = [(i, k) for i, k in left if not set(left[i, k]) & set(right[k, i])]
        return sum(rows[i] * columns[k] * ITEM_BYTES for i, k in apart)


class Fft(ArrayOperation):
    """The Fourier transform of every column; each column lies in one block."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 2000, "text": "rows and columns of each matrix of float64"},
            "chunk": {"kind": "count", "default": 500, "text": "columns of one block"},
        },
        "held": "(3 * size**2 / workers + 3 * threads * size * chunk) * 8",
        "grows": {"size": 0.5, "chunk": 0.5},
        "source": "dask_cuda.benchmarks.local_cupy -o fft",
        "timed": "persisting the Fourier transform of every column of operands that lie on the workers, waiting",
        "counted": "size² × 8",
        "oracle": "Σ|X|² equals size·Σ|x|²; w·X, w being powers of a root of −1, equals x times a "
        "geometric series; to 1e-9",
    }
    inputs = ((uniform, ("size", "size"), ("size", "chunk")),)
    operation = staticmethod(lambda x: [np.fft.fft(x, axis=0)])

    def check(self, answer: List[Any]) -> Answer:
        """Parseval's Σ|X|² = n · Σ|x|², and the sum over all coefficients weighted with powers of a root of −1.

        The transform of the weights exp(2πi (m + ½) k / n) is known in closed form, by the geometric series:
        2 / (1 − exp(2πi (m + ½ − j) / n)). All weights have the modulus 1.
        """
        size = self.size
        shift = self._round % size + 0.5
        steps = np.arange(size)
        # (2m + 1)·k modulo 2n in whole numbers: an angle of 10⁹ turns would have lost its digits.
        weights = np.exp(1j * np.pi * ((round(2 * shift) * steps) % (2 * size)) / size)
        transformed = 2.0 / (1.0 - np.exp(2j * np.pi * (shift - steps) / size))
        found, expected = self.projected_result(answer[0], weights), self.projected(0, transformed)
        power = math.fsum(self.of_blocks(answer[0], energy))
        expected_power = size * math.fsum(self.redrawn(0, energy))
        details = {"off_by": distance(found, expected), "power": power, "expected_power": expected_power}
        return judged(close(found, expected) and close(power, expected_power), details)


class Total(ArrayOperation):
    """The sum of all elements."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 2000, "text": "rows and columns of each matrix of float64"},
            "chunk": {"kind": "count", "default": 1000, "text": "rows and columns of one block"},
        },
        "held": "(1 * size**2 / workers + 2 * threads * chunk**2) * 8",
        "grows": {"size": 0.5, "chunk": 0.5},
        "source": "dask_cuda.benchmarks.local_cupy -o sum",
        "timed": "persisting the sum of all elements of operands that lie on the workers, waiting",
        "counted": "size² × 8",
        "oracle": "equals the exact sum of the blocks' sums, drawn again, to 1e-9; size²/2 within "
        "6 standard deviations",
    }
    inputs = (SQUARE,)
    operation = staticmethod(lambda x: [x.sum()])

    def scale(self) -> float:
        """By what the sum of all elements is divided."""
        return 1.0

    def check(self, answer: List[Any]) -> Answer:
        """Against the exact sum of the blocks' sums, and size²/2 ± size · √(1/12)."""
        (found,) = (float(part) for part in self.of_blocks(answer[0], whole))
        expected = math.fsum(self.redrawn(0, total)) / self.scale()
        sigmas = abs(found * self.scale() - self.size**2 / 2) / (self.size * math.sqrt(1.0 / 12.0))
        details = {"answer": found, "reference": expected, "sigmas": round(sigmas, 3)}
        return judged(close(found, expected) and sigmas <= SIGMAS, details)

    @property
    def least_moved_bytes(self) -> int:
        """One partial sum from each worker with blocks but the one that adds them up."""
        return ITEM_BYTES * max(0, len(self.owners(self.arrays[0])) - 1)


class Mean(Total):
    """The mean of all elements."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 2000, "text": "rows and columns of each matrix of float64"},
            "chunk": {"kind": "count", "default": 1000, "text": "rows and columns of one block"},
        },
        "held": "(1 * size**2 / workers + 2 * threads * chunk**2) * 8",
        "grows": {"size": 0.5, "chunk": 0.5},
        "source": "dask_cuda.benchmarks.local_cupy -o mean",
        "timed": "persisting the mean of all elements of operands that lie on the workers, waiting",
        "counted": "size² × 8",
        "oracle": "equals the exact sum of the blocks' sums, drawn again, to 1e-9; size²/2 within "
        "6 standard deviations (times size²)",
    }
    operation = staticmethod(lambda x: [x.mean()])

    def scale(self) -> float:
        """The count."""
        return float(self.size**2)


class Slice(ArrayOperation):
    """Every third row, copied."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 2000, "text": "rows and columns of each matrix of float64"},
            "chunk": {"kind": "count", "default": 1000, "text": "rows and columns of one block"},
        },
        "held": "(4 / 3 * size**2 / workers + 2 * threads * chunk**2) * 8",
        "grows": {"size": 0.5, "chunk": 0.5},
        "source": "dask_cuda.benchmarks.local_cupy -o slice",
        "timed": "persisting x[::3].copy() of operands that lie on the workers, waiting",
        "counted": "size² × 8",
        "oracle": "shape; w·x[::3] equals v·x in every column to 1e-9, v being the random w in every third place",
    }
    inputs = (SQUARE,)
    operation = staticmethod(lambda x: [x[::3].copy()])

    def check(self, answer: List[Any]) -> Answer:
        """w · x[::3] against v · x, v being w in every third place and 0 elsewhere."""
        rows = -(-self.size // 3)
        weights = self.weights(rows)
        spread = np.zeros(self.size)
        spread[::3] = weights
        shape = list(answer[0].shape)
        expected = self.projected(0, spread)
        found = self.projected_result(answer[0], weights) if shape == [rows, self.size] else np.empty(0)
        return judged(
            close(found, expected), {"shape": shape, "expected_rows": rows, "off_by": distance(found, expected)}
        )


class Svd(ArrayOperation):
    """The singular value decomposition of a tall matrix, whose blocks hold whole rows."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 20000, "text": "rows of the matrix of float64"},
            "second_size": {"kind": "count", "default": 200, "text": "columns, no more than rows"},
            "chunk": {"kind": "count", "default": 5000, "text": "rows of one block"},
        },
        "held": "(3 * size * second_size / workers + (2 * ceil(size / max(1, chunk)) + 3) * second_size**2) * 8",
        "grows": {"size": 1.0, "chunk": 1.0},
        "source": "dask_cuda.benchmarks.local_cupy -o svd",
        "timed": "persisting u, s and vᵀ of the singular value decomposition of operands that lie "
        "on the workers, waiting",
        "counted": "size × second_size × 8",
        "oracle": "w·u·s·vᵀ equals w·x, uᵀu and v vᵀ leave a random vector as it is, Σs² equals "
        "Σx², all to 1e-9; s falls",
    }
    inputs = ((uniform, ("size", "second_size"), ("chunk", "second_size")),)
    operation = staticmethod(lambda x: list(np.linalg.svd(x)))

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.columns = int(params["second_size"])
        """Of the matrix; singular values too."""

    def setup(self) -> None:
        """Refuse what Dask can't decompose. Raises ValueError: more columns than rows."""
        if self.columns > self.size:
            raise ValueError(f"svd needs at least as many rows as columns: {self.size} < {self.columns}")

    def check(self, answer: List[Any]) -> Answer:
        """w·u·s·vᵀ = w·x, uᵀu and v vᵀ leave a vector as it is, s falls, and Σs² is the sum of all squares."""
        left, singular, right = answer
        weights, vector = self.weights(self.size), self.weights(self.columns)
        values = np.concatenate(self.of_blocks(singular, whole))
        through_left = self.projected_result(left, weights)
        found = self.projected_result(right, through_left * values)
        expected = self.projected(0, weights)
        again_left = np.sum(self.of_blocks(left, gram_image, lambda _: (vector,)), axis=0)
        again_right = np.sum(self.of_blocks(right, gram_image, lambda _: (vector,)), axis=0)
        squares = math.fsum(self.redrawn(0, energy))
        falls = bool((np.diff(values) <= 0).all() and values[-1] >= 0)
        is_ok = (
            close(found, expected)
            and close(again_left, vector)
            and close(again_right, vector)
            and close(math.fsum(values**2), squares)
        )
        details = {
            "off_by": distance(found, expected),
            "u_off_by": distance(again_left, vector),
            "v_off_by": distance(again_right, vector),
            "sum_of_squares": math.fsum(values**2),
            "expected_squares": squares,
            "singular_values_fall": falls,
        }
        return judged(is_ok and falls, details)

    @property
    def least_moved_bytes(self) -> int:
        """Every worker with blocks but one must give away a triangular factor, and be it that of its smallest block."""
        rows = min(self.arrays[0].chunks[0])
        others = max(0, len(self.owners(self.arrays[0])) - 1)
        return others * min(int(rows), self.columns) * self.columns * ITEM_BYTES


THRESHOLD = 10.0
"""Half of the numbers of Normal(10, 1) are larger."""


def weighted(block: Any, entropy: Tuple[int, ...], device_name: str) -> Any:
    """(length, weights · block): a figure that depends on the order. The weights are drawn where the block lies."""
    weights = 0.5 + random_state(device_name, entropy).random_sample(len(block))
    return np.array([len(block), float(weights @ block)])


class Columns(ArrayOperation):
    """Two columns of ``size`` numbers each, Normal(10, 1), cut alike; compared block by block."""

    inputs = (COLUMN, COLUMN)

    def block_weights(self, block: Block) -> Tuple[Any, ...]:
        """What a block's weights are drawn from."""
        return (self.entropy(WEIGHTS, block.place),)


class ColSum(Columns):
    """x + y."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 1000000, "text": "numbers in a column"},
            "chunk": {"kind": "count", "default": 250000, "text": "numbers in one block of a column"},
        },
        "held": "(3 * size / workers + 2 * threads * chunk) * 8",
        "grows": {"size": 1.0, "chunk": 1.0},
        "source": "dask_cuda.benchmarks.local_cupy -o col_sum",
        "timed": "persisting x + y of operands that lie on the workers, waiting",
        "counted": "2 × size × 8",
        "oracle": "w·(x + y) equals w·x + w·y in every block to 1e-9, w random and x, y drawn again",
    }
    operation = staticmethod(lambda x, y: [x + y])

    def check(self, answer: List[Any]) -> Answer:
        """w · (x + y) = w · x + w · y in every block."""
        found = np.array(self.of_blocks(answer[0], weighted, self.block_weights))
        x, y = (np.array(self.redrawn(number, weighted, self.block_weights)) for number in (0, 1))
        expected = np.column_stack([x[:, 0], x[:, 1] + y[:, 1]])
        lengths_agree = found.shape == expected.shape and bool((found[:, 0] == expected[:, 0]).all())
        is_ok = lengths_agree and close(found[:, 1], expected[:, 1])
        return judged(is_ok, {"off_by": distance(found[:, 1], expected[:, 1]), "lengths_agree": lengths_agree})


def masked(mask: Any, draw_entropy: Tuple[int, ...], entropy: Tuple[int, ...], device_name: str) -> Any:
    """What must be left of a block of x, found through the places where the block ``mask`` of y is larger."""
    x = normal(device_name, draw_entropy, mask.shape)
    (places,) = device.array_module(device_name).nonzero(mask > THRESHOLD)
    return weighted(x[places], entropy, device_name)


class ColMask(Columns):
    """x[y > 10]: the result's length isn't known before."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 1000000, "text": "numbers in a column"},
            "chunk": {"kind": "count", "default": 250000, "text": "numbers in one block of a column"},
        },
        "held": "(3 * size / workers + 2 * threads * chunk) * 8",
        "grows": {"size": 1.0, "chunk": 1.0},
        "source": "dask_cuda.benchmarks.local_cupy -o col_mask",
        "timed": "persisting x[y > 10] of operands that lie on the workers, waiting",
        "counted": "2 × size × 8",
        "oracle": "every block's count exactly, its randomly weighted sum to 1e-9, by places "
        "instead of a mask, x, y drawn again",
    }
    operation = staticmethod(lambda x, y: [x[y > THRESHOLD]])

    def check(self, answer: List[Any]) -> Answer:
        """Exact count and weighted sum of every block."""
        found = np.array(self.of_blocks(answer[0], weighted, self.block_weights))
        expected = np.array(
            self.redrawn(1, masked, lambda block: (self.entropy(0, block.place), *self.block_weights(block)))
        )
        counts_agree = found.shape == expected.shape and bool((found[:, 0] == expected[:, 0]).all())
        details = {
            "count": int(found[:, 0].sum()),
            "expected_count": int(expected[:, 0].sum()),
            "off_by": distance(found[:, 1], expected[:, 1]),
        }
        return judged(counts_agree and close(found[:, 1], expected[:, 1]), details)


class ColGather(ArrayOperation):
    """x[index], with ``second_size`` random places of x, Normal(10, 1)."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 1000000, "text": "numbers in a column"},
            "second_size": {"kind": "count", "default": 10000, "text": "places to gather, random"},
            "chunk": {"kind": "count", "default": 250000, "text": "numbers in one block of a column"},
        },
        "held": "(size / workers + 2 * threads * chunk + (2 + ceil(size / max(1, chunk))) * second_size) * 8",
        "grows": {"size": 1.0, "second_size": 1.0, "chunk": 1.0},
        "source": "dask_cuda.benchmarks.local_cupy -o col_gather",
        "timed": "persisting x[index] of operands that lie on the workers, waiting",
        "counted": "(size + second_size) × 8",
        "oracle": "every number equals the one in its place, exactly, looked up in blocks that are drawn again",
    }
    operation = staticmethod(lambda x, index: [x[index]])

    def operands(self) -> List[Operand]:
        """The column and the index."""
        chunk = int(self.params["chunk"])
        index = Operand(ColumnPlaces(self.size), (int(self.params["second_size"]),), (chunk,))
        return [Operand(normal, (self.size,), (chunk,)), index]

    def check(self, answer: List[Any]) -> Answer:
        """Every number found must be the one that its block of x, drawn again, has in that place: exact."""
        index = np.concatenate(self.redrawn(1, whole))
        parts = self.redrawn(0, picked, lambda block: (block.first[0], index))
        expected = np.empty(len(index))
        for where, values in parts:
            expected[where] = values
        found = np.concatenate(self.of_blocks(answer[0], whole))
        wrong = int((found != expected).sum()) if len(found) == len(expected) else len(expected)
        return judged(not wrong, {"gathered": len(found), "expected": len(expected), "wrong": wrong})

    @property
    def least_moved_bytes(self) -> int:
        """The index's first block meets every block of x: where they lie apart, a block must move to each other owner.

        Either the index to the owner of x's block or that block away from it; the smallest of all blocks is counted.
        """
        (first, *_) = self.holders(self.arrays[1]).values()
        others = [owner for owner in self.owners(self.arrays[0]) if owner not in first]
        return len(others) * int(min(min(array.chunks[0]) for array in self.arrays)) * ITEM_BYTES


class ColumnPlaces:
    """Draws places in a column of ``size`` elements; an object, because ``draw`` knows only a block's own shape."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, device_name: str, entropy: Tuple[int, ...], shape: Tuple[int, ...]) -> Any:
        """int64 in [0, size)."""
        return random_state(device_name, entropy).randint(0, self.size, shape, dtype="int64")


def picked(block: Any, first: int, index: Any, device_name: str) -> Tuple[Any, Any]:
    """(where in ``index`` it points into this block, the numbers it points at)."""
    (where,) = np.nonzero((index >= first) & (index < first + len(block)))
    return where, device.host(device_name, block)[index[where] - first]


def mean_filter(values: Any, reach: int, device_name: str) -> Any:
    """Mean of the (2·reach + 1)² elements around every element of a matrix, which is mirrored at its edges.

    On the GPU the convolution that dask-cuda calls. On the CPU it calls scipy's, which an image may lack, so numpy adds
    up shifted views.
    """
    width = 2 * reach + 1
    if device_name == "gpu":
        import cupy
        from cupyx.scipy.ndimage import convolve

        return convolve(values, cupy.full((width, width), 1.0 / width**2))
    padded = np.pad(values, reach, mode="symmetric")
    rows, columns = values.shape
    total = np.zeros_like(values)
    for i in range(width):
        for j in range(width):
            total += padded[i : i + rows, j : j + columns]
    return total / width**2


class MapOverlap(ArrayOperation):
    """A mean filter of (2·kernel + 1)² elements: every block needs its neighbours' margins."""

    plan = {
        "params": {
            "size": {"kind": "count", "default": 2000, "text": "rows and columns of each matrix of float64"},
            "chunk": {"kind": "count", "default": 1000, "text": "rows and columns of one block"},
            "kernel": {"kind": "count", "default": 1, "text": "how many neighbours in each direction take part"},
        },
        "held": "(4 * size**2 / workers + 2 * threads * chunk**2) * 8",
        "grows": {"size": 0.5, "chunk": 0.5},
        "source": "dask_cuda.benchmarks.local_cupy_map_overlap",
        "timed": "persisting the mean filter of (2·kernel + 1)² elements of operands that lie on the workers, waiting",
        "counted": "size² × 8",
        "oracle": "w·y equals the same filter as two means over lines, applied to w and to w·x "
        "instead, in every column to 1e-9",
    }
    inputs = (SQUARE,)

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.reach = int(params["kernel"])
        """How far a neighbour may be."""

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed. ``none``: each block ends at the array's edge, as in dask-cuda, and mirrors itself there."""
        return [
            arrays[0].map_overlap(
                mean_filter,
                depth=self.reach,
                boundary="none",
                meta=arrays[0]._meta,
                reach=self.reach,
                device_name=self.context.device,
            )
        ]

    def check(self, answer: List[Any]) -> Answer:
        """w · F x Fᵀ = ((w · F) · x) · Fᵀ: the filter is F, a mean over a line, applied to rows and columns.

        F is symmetric, also at its mirrored edges.
        """
        weights = self.weights(self.size)
        found = self.projected_result(answer[0], weights)
        expected = line_filter(self.projected(0, line_filter(weights, self.reach)), self.reach)
        return judged(close(found, expected), {"off_by": distance(found, expected)})

    @property
    def least_moved_bytes(self) -> int:
        """Every worker with blocks sends or receives at least one margin, and one transfer serves two workers."""
        owners = len(self.owners(self.arrays[0]))
        edge = int(min(size for sizes in self.arrays[0].chunks for size in sizes))
        return -(-owners // 2) * min(self.reach, edge) * edge * ITEM_BYTES if owners > 1 else 0


def line_filter(values: Any, reach: int) -> Any:
    """Mean of the 2·reach + 1 elements around each of a line that is mirrored at its ends."""
    width = 2 * reach + 1
    sums = np.cumsum(np.concatenate([[0.0], np.pad(values, reach, mode="symmetric")]))
    return (sums[width:] - sums[:-width]) / width
