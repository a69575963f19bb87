"""dask-bench's seven array tasks (``assess_arrays``)."""

from typing import Any, Dict, List, Tuple

import dask.array
import numpy as np

from gpubench.workloads import dask_compat, weak_data
from gpubench.workloads.arrays import drawn
from gpubench.workloads.base import Answer
from gpubench.workloads.catalogue.weak import ITEM_BYTES, square, square_chunks
from gpubench.workloads.weak import WeakTask, close, deviation, exactly, exactly_and_likely

ROW, COLUMN = 42, 314
"""The element that the original looks up."""
ONE = 1e-12

Place = Tuple[int, int]


class ArrayTask(WeakTask):
    """A square of int64, (N, N), N = int(problem_size·√threads), in about as many square chunks as threads."""

    @property
    def side(self) -> int:
        """Rows and columns."""
        return square(self.problem_size, self.threads)[0]

    @property
    def nominal_bytes(self) -> int:
        """The array's bytes."""
        return self.side**2 * ITEM_BYTES

    @property
    def least_moved_bytes(self) -> int:
        """Nothing is sure to move."""
        return 0

    @property
    def chunks(self) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        """Lengths of the blocks along both axes."""
        lengths = square_chunks(self.problem_size, self.threads)
        return lengths, lengths

    def blocks(self) -> Dict[Place, Tuple[Tuple[int, ...], Place, Place]]:
        """Of every block, by its number in both directions: entropy, shape, place of its first element."""
        lengths = self.chunks[0]
        starts = [sum(lengths[:number]) for number in range(len(lengths))]
        numbers = range(len(lengths))
        return {
            (i, j): ((*self.entropy, i, j), (lengths[i], lengths[j]), (starts[i], starts[j]))
            for i in numbers
            for j in numbers
        }

    def input(self) -> Any:
        """As published: never computed, so that every task draws it anew."""
        context, draw = self.context, weak_data.integers_block
        return drawn(context, self.name, draw, self.entropy, self.chunks, settled=self.is_persisted, dtype="int64")

    def holders(self) -> Dict[str, List[str]]:
        """Workers that hold each block of the input, by ``str(key)``; none where it isn't persisted."""
        return dask_compat.holders(self.context.client, self._data) if self.is_persisted else {}

    def drawn_figures(self) -> Tuple[List[int], List[int]]:
        """Of the whole input, drawn once more: ``block_figures``; elements, sum and sum of squares."""
        blocks = self.blocks().values()
        devices = [self.context.device] * len(blocks)
        parts = self.on_workers(weak_data.drawn_figures, devices, *map(list, zip(*blocks)))
        return weak_data.added_up([figures for figures, _ in parts]), [
            sum(sums) for sums in zip(*(s for _, s in parts))
        ]


class KeptArray(ArrayTask):
    """A task whose result stays on the workers: figures are taken there, block by block."""

    def lazy(self, data: Any) -> Any:
        """What is persisted."""
        raise NotImplementedError

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.persisted(self.lazy(data))

    def seen(self, result: Any) -> Any:
        """Figures of every block."""
        futures = dask_compat.block_futures(self.context.client, result)
        held = [futures[str((result.name, *place))] for place in self.blocks()]
        corners = [corner for _, _, corner in self.blocks().values()]
        return self.on_workers(weak_data.block_figures, held, corners, [self.context.device] * len(held))


class ArrayCreate(KeptArray):
    """Drawing the array."""

    def lazy(self, data: Any) -> Any:
        """Nothing but the numbers."""
        return data

    def check(self, answer: List[List[int]]) -> Answer:
        """Against the numbers drawn once more, and against the distribution's mean."""
        figures, (count, total, _) = self.drawn_figures()
        return exactly_and_likely(weak_data.added_up(answer), figures, count, total)


class ArrayBlockwise(KeptArray):
    """One function on every block."""

    def lazy(self, data: Any) -> Any:
        """Plus one."""
        return data.map_blocks(_plus_one, dtype=data.dtype)

    def check(self, answer: List[List[int]]) -> Answer:
        """One more per element changes the weighted sums by the product of the weights' sums."""
        (count, total, form, mirrored), _ = self.drawn_figures()
        first, second = weak_data.weight_sums(self.context.device, self.side)
        expected = [count, total + count, form + first * second, mirrored + first * second]
        return exactly(weak_data.added_up(answer), [figure % weak_data.WRAP for figure in expected])


def _plus_one(block: Any) -> Any:
    return block + 1


class ArrayTranspose(KeptArray):
    """Every block off the diagonal meets its mirror image."""

    def lazy(self, data: Any) -> Any:
        """Plus its transpose."""
        return data + data.T

    @property
    def least_moved_bytes(self) -> int:
        """One of x[i, j] and x[j, i], equally large, for every pair of them that no worker holds together."""
        holders = self.holders()
        total = 0
        for (i, j), (_, shape, _) in self.blocks().items():
            if holders and i > j:
                here, there = (holders[str((self._data.name, *place))] for place in ((i, j), (j, i)))
                total += 0 if set(here) & set(there) else shape[0] * shape[1] * ITEM_BYTES
        return total

    def check(self, answer: List[List[int]]) -> Answer:
        """The weighted sums of a transpose are those of the array, exchanged."""
        (count, total, form, mirrored), _ = self.drawn_figures()
        expected = [count, 2 * total, form + mirrored, form + mirrored]
        return exactly(weak_data.added_up(answer), [figure % weak_data.WRAP for figure in expected])


class ArrayElementwise(KeptArray):
    """Several functions on every element, one after the other."""

    def lazy(self, data: Any) -> Any:
        """One, everywhere."""
        return dask.array.sin(data) ** 2 + dask.array.cos(data) ** 2

    def seen(self, result: Any) -> Any:
        """Elements and largest distance from one, of every block."""
        return self.on_workers(weak_data.farthest_from_one, self.context.client.futures_of(result))

    def check(self, answer: List[List[float]]) -> Answer:
        """The identity holds for every element."""
        count, farthest = sum(part[0] for part in answer), max(part[1] for part in answer)
        is_ok = count == self.side**2 and all(part[1] <= ONE for part in answer)
        details = {"elements": count, "expected_elements": self.side**2, "farthest_from_one": farthest}
        return Answer("ok" if is_ok else "wrong", details)


class ArrayAccess(ArrayTask):
    """One element; the original counts its 8 bytes, so a rate is one over a time."""

    @property
    def nominal_bytes(self) -> int:
        """Of the element."""
        return ITEM_BYTES

    def setup(self) -> None:
        """Is there such an element?

        Raises:
            ValueError: no.
        """
        super().setup()
        if self.side <= COLUMN:
            raise ValueError(f"weak-array-access looks up x[{ROW}, {COLUMN}], x has {self.side} rows and columns")

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data[ROW, COLUMN])

    def seen(self, result: Any) -> int:
        """A plain number."""
        return int(result)

    def check(self, answer: int) -> Answer:
        """Against that element of its block, drawn once more."""
        chunk = self.chunks[0][0]
        place = (ROW // chunk, COLUMN // chunk)
        entropy, shape, (row, column) = self.blocks()[place]
        drawn_again = [self.context.device], [entropy], [shape], [ROW - row], [COLUMN - column]
        return exactly([answer], self.on_workers(weak_data.element, *drawn_again))


class ArrayStd(ArrayTask):
    """Standard deviation of all elements."""

    @property
    def least_moved_bytes(self) -> int:
        """A partial result from each worker with blocks but the one that puts them together."""
        owners = {workers[0] for workers in self.holders().values() if len(workers) == 1}
        return ITEM_BYTES * max(0, len(owners) - 1)

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data.std())

    def seen(self, result: Any) -> float:
        """A plain number."""
        return float(result)

    def check(self, answer: float) -> Answer:
        """Against exact integer sums."""
        _, (count, total, squares) = self.drawn_figures()
        return close([answer], [deviation(count, total, squares, sample=False)])


class ArrayStdAxis(ArrayTask):
    """Standard deviation of every column."""

    @property
    def least_moved_bytes(self) -> int:
        """A partial result per column from each worker with blocks of it but the one that puts them together."""
        holders = self.holders()
        lengths = self.chunks[0]
        total = 0
        for number, columns in enumerate(lengths if holders else ()):
            blocks = (holders[str((self._data.name, row, number))] for row in range(len(lengths)))
            owners = {workers[0] for workers in blocks if len(workers) == 1}
            total += ITEM_BYTES * columns * max(0, len(owners) - 1)
        return total

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data.std(axis=0))

    def seen(self, result: Any) -> List[float]:
        """Plain numbers."""
        columns: List[float] = result.tolist()
        return columns

    def check(self, answer: List[float]) -> Answer:
        """Against exact integer sums of every column; a sum of squares is far below 2⁵³."""
        blocks = self.blocks()
        arguments = ([part[which] for part in blocks.values()] for which in (0, 1))
        parts = self.on_workers(weak_data.column_sums, [self.context.device] * len(blocks), *arguments)
        sums = np.zeros((2, self.side))
        for (_, (_, columns), (_, start)), part in zip(blocks.values(), parts):
            sums[:, start : start + columns] += part
        mean, square_mean = sums / self.side
        return close(answer, np.sqrt(square_mean - mean**2).tolist())
