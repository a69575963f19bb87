"""dask-cuda's ``local_cupy`` on matrices: dot, svd, fft, sum, mean, slice."""

import math
from typing import Any, Dict, List, Tuple

import numpy as np

from gpubench.workloads import device
from gpubench.workloads.array_operation import (
    CLOSE,
    ArrayOperation,
    Block,
    Operand,
    close,
    distance,
)
from gpubench.workloads.arrays import ITEM_BYTES, SIGMAS, uniform

Verdict = Tuple[bool, Dict[str, Any]]


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


def nothing(_block: Block) -> Tuple[Any, ...]:
    """For figures that depend on the block alone."""
    return ()


class Square(ArrayOperation):
    """One (size, size) matrix, uniform on [0, 1), in (chunk, chunk) blocks."""

    def operands(self) -> List[Operand]:
        """The matrix."""
        return [Operand(uniform, (self.size, self.size), (self.chunk, self.chunk))]


class Dot(ArrayOperation):
    """The product of two square matrices."""

    def operands(self) -> List[Operand]:
        """Both matrices, cut alike."""
        return [Operand(uniform, (self.size, self.size), (self.chunk, self.chunk))] * 2

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [arrays[0].dot(arrays[1])]

    def verify(self, results: List[Any]) -> Verdict:
        """w · (AB) = (w · A) · B, in n² steps instead of n³."""
        weights = self.weights(self.size)
        found = self.projected_result(results[0], weights)
        expected = self.projected(1, self.projected(0, weights))
        return close(found, expected), {"off_by": distance(found, expected), "tolerance": CLOSE}

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

    def operands(self) -> List[Operand]:
        """The matrix, cut along the second axis only."""
        return [Operand(uniform, (self.size, self.size), (self.size, self.chunk))]

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [np.fft.fft(arrays[0], axis=0)]

    def verify(self, results: List[Any]) -> Verdict:
        """Parseval's Σ|X|² = n · Σ|x|², and the sum over all coefficients weighted with powers of a root of −1.

        The transform of the weights exp(2πi (m + ½) k / n) is known in closed form, by the geometric series:
        2 / (1 − exp(2πi (m + ½ − j) / n)). All weights have the modulus 1.
        """
        size = self.size
        shift = self.round % size + 0.5
        steps = np.arange(size)
        # (2m + 1)·k modulo 2n in whole numbers: an angle of 10⁹ turns would have lost its digits.
        weights = np.exp(1j * np.pi * ((round(2 * shift) * steps) % (2 * size)) / size)
        transformed = 2.0 / (1.0 - np.exp(2j * np.pi * (shift - steps) / size))
        found, expected = self.projected_result(results[0], weights), self.projected(0, transformed)
        power = math.fsum(self.of_blocks(results[0], energy, nothing))
        expected_power = size * math.fsum(self.redrawn(0, energy, nothing))
        details = {"off_by": distance(found, expected), "power": power, "expected_power": expected_power}
        return close(found, expected) and close(power, expected_power), details


class Total(Square):
    """The sum of all elements."""

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [arrays[0].sum()]

    def scale(self) -> float:
        """By what the sum of all elements is divided."""
        return 1.0

    def verify(self, results: List[Any]) -> Verdict:
        """Against the exact sum of the blocks' sums, and size²/2 ± size · √(1/12)."""
        (found,) = (float(part) for part in self.of_blocks(results[0], whole, nothing))
        expected = math.fsum(self.redrawn(0, total, nothing)) / self.scale()
        sigmas = abs(found * self.scale() - self.size**2 / 2) / (self.size * math.sqrt(1.0 / 12.0))
        details = {"answer": found, "reference": expected, "sigmas": round(sigmas, 3)}
        return close(found, expected) and sigmas <= SIGMAS, details

    @property
    def least_moved_bytes(self) -> int:
        """One partial sum from each worker with blocks but the one that adds them up."""
        return ITEM_BYTES * max(0, len(self.owners(self.arrays[0])) - 1)


class Mean(Total):
    """The mean of all elements."""

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [arrays[0].mean()]

    def scale(self) -> float:
        """The count."""
        return float(self.size**2)


class Slice(Square):
    """Every third row, copied."""

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed."""
        return [arrays[0][::3].copy()]

    def verify(self, results: List[Any]) -> Verdict:
        """w · x[::3] against v · x, v being w in every third place and 0 elsewhere."""
        rows = -(-self.size // 3)
        weights = self.weights(rows)
        spread = np.zeros(self.size)
        spread[::3] = weights
        shape = list(results[0].shape)
        expected = self.projected(0, spread)
        found = self.projected_result(results[0], weights) if shape == [rows, self.size] else np.empty(0)
        return close(found, expected), {"shape": shape, "expected_rows": rows, "off_by": distance(found, expected)}


class Svd(ArrayOperation):
    """The singular value decomposition of a tall matrix, whose blocks hold whole rows."""

    @property
    def columns(self) -> int:
        """Of the matrix; singular values too."""
        return int(self.params["second_size"])

    def setup(self) -> None:
        """Refuse what Dask can't decompose.

        Raises:
            ValueError: more columns than rows.
        """
        if self.columns > self.size:
            raise ValueError(f"svd needs at least as many rows as columns: {self.size} < {self.columns}")

    def operands(self) -> List[Operand]:
        """The matrix, cut along the first axis only."""
        return [Operand(uniform, (self.size, self.columns), (self.chunk, self.columns))]

    def operation(self, *arrays: Any) -> List[Any]:
        """What is timed: u, s and vᵀ."""
        return list(np.linalg.svd(arrays[0]))

    def verify(self, results: List[Any]) -> Verdict:
        """w·u·s·vᵀ = w·x, uᵀu and v vᵀ leave a vector as it is, s falls, and Σs² is the sum of all squares."""
        left, singular, right = results
        weights, vector = self.weights(self.size), self.weights(self.columns)
        values = np.concatenate(self.of_blocks(singular, whole, nothing))
        through_left = self.projected_result(left, weights)
        found = self.projected_result(right, through_left * values)
        expected = self.projected(0, weights)
        again_left = np.sum(self.of_blocks(left, gram_image, lambda _: (vector,)), axis=0)
        again_right = np.sum(self.of_blocks(right, gram_image, lambda _: (vector,)), axis=0)
        squares = math.fsum(self.redrawn(0, energy, nothing))
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
        return is_ok and falls, details

    @property
    def least_moved_bytes(self) -> int:
        """Every worker with blocks but one must give away a triangular factor, and be it that of its smallest block."""
        rows = min(self.arrays[0].chunks[0])
        others = max(0, len(self.owners(self.arrays[0])) - 1)
        return others * min(int(rows), self.columns) * self.columns * ITEM_BYTES
