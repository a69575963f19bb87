"""dask-cuda's ``local_cupy`` on columns: col-sum, col-mask, col-gather, and its mean filter, map-overlap."""

from typing import Any, List, Tuple

import numpy as np

from gpubench.workloads import device
from gpubench.workloads.array_operation import (
    WEIGHTS,
    ArrayOperation,
    Block,
    Operand,
    close,
    distance,
    normal,
)
from gpubench.workloads.arrays import ITEM_BYTES, random_state, uniform
from gpubench.workloads.matrices import Verdict, whole

THRESHOLD = 10.0
"""Half of the numbers of Normal(10, 1) are larger."""


def weighted(block: Any, entropy: Tuple[int, ...], device_name: str) -> Any:
    """(length, weights · block): a figure that depends on the order. The weights are drawn where the block lies."""
    weights = 0.5 + random_state(device_name, entropy).random_sample(len(block))
    return np.array([len(block), float(weights @ block)])


class Columns(ArrayOperation):
    """Two columns of ``size`` numbers each, Normal(10, 1), cut alike; compared block by block."""

    def operands(self) -> List[Operand]:
        """Both columns."""
        return [Operand(normal, (self.size,), (self.chunk,))] * 2

    def block_weights(self, block: Block) -> Tuple[Any, ...]:
        """What a block's weights are drawn from."""
        return (self.entropy(WEIGHTS, block.place),)


class ColSum(Columns):
    """x + y."""

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [arrays[0] + arrays[1]]

    def verify(self, results: List[Any]) -> Verdict:
        """w · (x + y) = w · x + w · y in every block."""
        found = np.array(self.of_blocks(results[0], weighted, self.block_weights))
        x, y = (np.array(self.redrawn(number, weighted, self.block_weights)) for number in (0, 1))
        expected = np.column_stack([x[:, 0], x[:, 1] + y[:, 1]])
        lengths_agree = found.shape == expected.shape and bool((found[:, 0] == expected[:, 0]).all())
        is_ok = lengths_agree and close(found[:, 1], expected[:, 1])
        return is_ok, {"off_by": distance(found[:, 1], expected[:, 1]), "lengths_agree": lengths_agree}


def masked(mask: Any, draw_entropy: Tuple[int, ...], entropy: Tuple[int, ...], device_name: str) -> Any:
    """What must be left of a block of x, found through the places where the block ``mask`` of y is larger."""
    x = normal(device_name, draw_entropy, mask.shape)
    (places,) = device.array_module(device_name).nonzero(mask > THRESHOLD)
    return weighted(x[places], entropy, device_name)


class ColMask(Columns):
    """x[y > 10]: the result's length isn't known before."""

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [arrays[0][arrays[1] > THRESHOLD]]

    def verify(self, results: List[Any]) -> Verdict:
        """Exact count and weighted sum of every block."""
        found = np.array(self.of_blocks(results[0], weighted, self.block_weights))
        expected = np.array(
            self.redrawn(1, masked, lambda block: (self.entropy(0, block.place), *self.block_weights(block)))
        )
        counts_agree = found.shape == expected.shape and bool((found[:, 0] == expected[:, 0]).all())
        details = {
            "count": int(found[:, 0].sum()),
            "expected_count": int(expected[:, 0].sum()),
            "off_by": distance(found[:, 1], expected[:, 1]),
        }
        return counts_agree and close(found[:, 1], expected[:, 1]), details


class ColGather(ArrayOperation):
    """x[index], with ``second_size`` random places of x, Normal(10, 1)."""

    def operands(self) -> List[Operand]:
        """The column and the index."""
        index = Operand(ColumnPlaces(self.size), (int(self.params["second_size"]),), (self.chunk,))
        return [Operand(normal, (self.size,), (self.chunk,)), index]

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [arrays[0][arrays[1]]]

    def verify(self, results: List[Any]) -> Verdict:
        """Every number found must be the one that its block of x, drawn again, has in that place: exact."""
        index = np.concatenate(self.redrawn(1, whole, lambda _: ()))
        parts = self.redrawn(0, picked, lambda block: (block.first[0], index))
        expected = np.empty(len(index))
        for where, values in parts:
            expected[where] = values
        found = np.concatenate(self.of_blocks(results[0], whole, lambda _: ()))
        wrong = int((found != expected).sum()) if len(found) == len(expected) else len(expected)
        return not wrong, {"gathered": len(found), "expected": len(expected), "wrong": wrong}

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


class MapOverlap(ArrayOperation):
    """A mean filter of (2·kernel + 1)² elements: every block needs its neighbours' margins."""

    @property
    def reach(self) -> int:
        """How far a neighbour may be."""
        return int(self.params["kernel"])

    def operands(self) -> List[Operand]:
        """A square, uniform on [0, 1)."""
        return [Operand(uniform, (self.size, self.size), (self.chunk, self.chunk))]

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed. ``none``: each block ends at the array's edge, as in dask-cuda, and mirrors itself there."""
        return [
            arrays[0].map_overlap(
                device.mean_filter,
                depth=self.reach,
                boundary="none",
                meta=arrays[0]._meta,
                reach=self.reach,
                device=self.context.device,
            )
        ]

    def verify(self, results: List[Any]) -> Verdict:
        """w · F x Fᵀ = ((w · F) · x) · Fᵀ: the filter is F, a mean over a line, applied to rows and columns.

        F is symmetric, also at its mirrored edges.
        """
        weights = self.weights(self.size)
        found = self.projected_result(results[0], weights)
        expected = line_filter(self.projected(0, line_filter(weights, self.reach)), self.reach)
        return close(found, expected), {"off_by": distance(found, expected)}

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
