"""dask-bench's weak scaling on arrays: seven tasks of ``assess_arrays``."""

from typing import Any, Dict, List, Tuple

import dask.array
import numpy as np

from gpubench.node.workloads import dask_compat, weak_data
from gpubench.node.workloads.base import WRAP, Answer, WorkloadContext, added_up, judged, partials_moved
from gpubench.node.workloads.catalogue.weak import ITEM_BYTES, square, square_chunks
from gpubench.node.workloads.random_blocks import drawn, mirrored_bytes
from gpubench.node.workloads.weak_task import WeakTask, close, deviation, exactly, exactly_and_likely, plus_one

ROW, COLUMN = 42, 314
"""The element that the original looks up."""
ONE = 1e-12

Place = Tuple[int, int]


class ArrayTask(WeakTask):
    """A square of int64, (N, N), N = int(problem_size·√threads), in about as many square chunks as threads."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.side, _ = square(self.problem_size, self.threads)
        """Rows and columns."""
        self.lengths = square_chunks(self.problem_size, self.threads)
        """Of the blocks along both axes."""

    @property
    def nominal_bytes(self) -> int:
        return self.side**2 * ITEM_BYTES

    def blocks(self) -> Dict[Place, Tuple[Tuple[int, ...], Place, Place]]:
        """Of every block, by its number in both directions: entropy, shape, place of its first element."""
        lengths = self.lengths
        starts = [sum(lengths[:number]) for number in range(len(lengths))]
        numbers = range(len(lengths))
        return {
            (i, j): ((*self.entropy, i, j), (lengths[i], lengths[j]), (starts[i], starts[j]))
            for i in numbers
            for j in numbers
        }

    def input(self) -> Any:
        """As published: never computed, so that every task draws it anew."""
        context, draw, chunks = self.context, weak_data.integers_block, (self.lengths, self.lengths)
        return drawn(context, self.name, draw, self.entropy, chunks, is_settled=self.is_persisted, dtype="int64")

    def holders(self) -> Dict[str, List[str]]:
        """Workers that hold each block of the input, by ``str(key)``; none where it isn't persisted."""
        return dask_compat.holders(self.context.client, self._data) if self.is_persisted else {}

    def drawn_figures(self) -> Tuple[List[int], List[int]]:
        """Of the whole input, drawn once more: ``block_figures``; elements, sum and sum of squares."""
        blocks = self.blocks().values()
        devices = [self.context.device] * len(blocks)
        parts = self.on_workers(weak_data.drawn_figures, devices, *map(list, zip(*blocks)))
        return added_up([figures for figures, _ in parts]), [sum(sums) for sums in zip(*(s for _, s in parts))]


class KeptArray(ArrayTask):
    """A task whose result stays on the workers: figures are taken there, block by block."""

    is_kept = True

    def seen(self, result: Any) -> Any:
        futures = dask_compat.block_futures(self.context.client, result)
        held = [futures[str((result.name, *place))] for place in self.blocks()]
        corners = [corner for _, _, corner in self.blocks().values()]
        return self.on_workers(weak_data.block_figures, held, corners, [self.context.device] * len(held))


class ArrayCreate(KeptArray):
    lazy = staticmethod(lambda x: x)

    def check(self, answer: List[List[int]]) -> Answer:
        figures, (count, total, _) = self.drawn_figures()
        return exactly_and_likely(added_up(answer), figures, count, total)


class ArrayBlockwise(KeptArray):
    lazy = staticmethod(lambda x: x.map_blocks(plus_one, dtype=x.dtype))

    def check(self, answer: List[List[int]]) -> Answer:
        """One more per element changes the weighted sums by the product of the weights' sums."""
        (count, total, form, mirrored), _ = self.drawn_figures()
        first, second = weak_data.weight_sums(self.context.device, self.side)
        expected = [count, total + count, form + first * second, mirrored + first * second]
        return exactly(added_up(answer), [figure % WRAP for figure in expected])


class ArrayTranspose(KeptArray):
    """Every block off the diagonal meets its mirror image."""

    lazy = staticmethod(lambda x: x + x.T)

    @property
    def least_moved_bytes(self) -> int:
        return mirrored_bytes(self._data, self.holders()) if self.is_persisted else 0

    def check(self, answer: List[List[int]]) -> Answer:
        """The weighted sums of a transpose are those of the array, exchanged."""
        (count, total, form, mirrored), _ = self.drawn_figures()
        expected = [count, 2 * total, form + mirrored, form + mirrored]
        return exactly(added_up(answer), [figure % WRAP for figure in expected])


class ArrayElementwise(KeptArray):
    lazy = staticmethod(lambda x: dask.array.sin(x) ** 2 + dask.array.cos(x) ** 2)

    def seen(self, result: Any) -> Any:
        """Elements and largest distance from one, of every block."""
        return self.on_workers(weak_data.farthest_from_one, self.context.client.futures_of(result))

    def check(self, answer: List[List[float]]) -> Answer:
        """The identity holds for every element."""
        count, farthest = sum(part[0] for part in answer), max(part[1] for part in answer)
        is_ok = count == self.side**2 and all(part[1] <= ONE for part in answer)
        details = {"elements": count, "expected_elements": self.side**2, "farthest_from_one": farthest}
        return judged(is_ok, details)


class ArrayAccess(ArrayTask):
    """One element; the original counts its 8 bytes, so a rate is one over a time."""

    lazy = staticmethod(lambda x: x[ROW, COLUMN])
    seen = staticmethod(int)

    @property
    def nominal_bytes(self) -> int:
        return ITEM_BYTES

    def setup(self) -> None:
        super().setup()
        if self.side <= COLUMN:
            raise ValueError(f"weak-array-access looks up x[{ROW}, {COLUMN}], x has {self.side} rows and columns")

    def check(self, answer: int) -> Answer:
        chunk = self.lengths[0]
        place = (ROW // chunk, COLUMN // chunk)
        entropy, shape, (row, column) = self.blocks()[place]
        drawn_again = [self.context.device], [entropy], [shape], [ROW - row], [COLUMN - column]
        return exactly([answer], self.on_workers(weak_data.element, *drawn_again))


class ArrayStd(ArrayTask):
    lazy = staticmethod(lambda x: x.std())
    seen = staticmethod(float)

    @property
    def least_moved_bytes(self) -> int:
        return ITEM_BYTES * partials_moved(self.holders().values())

    def check(self, answer: float) -> Answer:
        _, (count, total, squares) = self.drawn_figures()
        return close([answer], [deviation(count, total, squares, sample=False)])


class ArrayStdAxis(ArrayTask):
    lazy = staticmethod(lambda x: x.std(axis=0))
    seen = staticmethod(lambda result: result.tolist())

    @property
    def least_moved_bytes(self) -> int:
        """Partial results of every column."""
        holders, total = self.holders(), 0
        for number, columns in enumerate(self.lengths if holders else ()):
            blocks = (holders[str((self._data.name, row, number))] for row in range(len(self.lengths)))
            total += ITEM_BYTES * columns * partials_moved(blocks)
        return total

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
