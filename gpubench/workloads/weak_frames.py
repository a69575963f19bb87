"""dask-bench's dataframe tasks (``assess_dataframes``) that move no rows; ``weak_groups`` has the others."""

from typing import Any, Dict, List, Tuple

import dask.dataframe
import distributed

from gpubench.workloads import dask_compat, weak_data
from gpubench.workloads.arrays import drawn
from gpubench.workloads.base import Answer
from gpubench.workloads.catalogue.weak import COLUMNS, ITEM_BYTES, ROW_BYTES, partition_starts
from gpubench.workloads.weak import WeakTask, close, deviation, exactly, exactly_and_likely

ROW = 42
"""The row that the original looks up."""


class FrameTask(WeakTask):
    """A frame of problem_size rows per thread, six columns of int64, two partitions per thread.

    The original persists it once and lets all tasks work on it; here each repetition has its own, because workers keep
    copies of what they fetched.
    """

    @property
    def starts(self) -> Tuple[int, ...]:
        """First row of every partition, and the number of rows."""
        return partition_starts(self.problem_size, self.threads)

    @property
    def nominal_bytes(self) -> int:
        """The frame's bytes without its index."""
        return self.starts[-1] * ROW_BYTES

    def partitions(self) -> List[Tuple[Tuple[int, ...], Tuple[int, int], int]]:
        """Of every partition: entropy, shape, first row."""
        ends = zip(self.starts, self.starts[1:])
        return [((*self.entropy, n, 0), (end - start, COLUMNS), start) for n, (start, end) in enumerate(ends)]

    def numbers(self) -> Any:
        """The array, still to be drawn, that the original makes its frame of."""
        lengths = tuple(shape[0] for _, shape, _ in self.partitions())
        chunks = (lengths, (COLUMNS,))
        return drawn(
            self.context, self.name, weak_data.integers_block, self.entropy, chunks, settled=False, dtype="int64"
        )

    def input(self) -> Any:
        """On the workers: where Dask puts it, or in equal contiguous shares."""
        if not self.is_persisted:
            return self.persisted(dask.dataframe.from_dask_array(self.numbers(), columns=weak_data.COLUMNS))
        context, parts, workers = self.context, self.partitions(), self.context.workers
        futures = [
            context.client.submit(
                weak_data.drawn_frame,
                context.device,
                *part,
                key=f"{self.name}-{number}",
                workers=[workers[number * len(workers) // len(parts)]],
            )
            for number, part in enumerate(parts)
        ]
        distributed.wait(futures)
        divisions = (*self.starts[:-1], self.starts[-1] - 1)
        meta = weak_data.drawn_frame(context.device, (0,), (1, COLUMNS), 0)
        return self.persisted(dask.dataframe.from_delayed(futures, meta=meta, divisions=divisions, verify_meta=False))

    def owners(self) -> List[str]:
        """The worker that holds each partition of the input, empty where several do."""
        held = dask_compat.partition_holders(self.context.client, self._data)
        return [next(iter(workers)) if len(workers) == 1 else "" for workers in held]

    @property
    def least_moved_bytes(self) -> int:
        """Nothing is sure to move."""
        return 0

    def partial_results(self) -> int:
        """Bytes of a number from each worker with partitions but the one that puts the numbers together."""
        return ITEM_BYTES * max(0, len(set(self.owners()) - {""}) - 1)

    def drawn(self, function: Any, *more: Any) -> List[Any]:
        """``function`` of every partition's device, entropy, shape and whatever ``more`` gives for each."""
        parts = self.partitions()
        entropies, shapes = ([part[which] for part in parts] for which in (0, 1))
        return self.on_workers(function, [self.context.device] * len(parts), entropies, shapes, *more)

    def drawn_rows(self, added: int) -> List[int]:
        """``row_figures`` of the whole input, drawn once more, after ``added`` was added to every number."""
        starts = list(self.starts[:-1])
        return weak_data.added_up(self.drawn(weak_data.drawn_row_figures, starts, [added] * len(starts)))

    def frame_figures(self, held: Any) -> List[List[int]]:
        """``frame_figures`` of every partition of a persisted frame, in order."""
        futures = dask_compat.partition_futures(self.context.client, held)
        return self.on_workers(weak_data.frame_figures, futures, [self.context.device] * len(futures))


def rows_of(parts: List[List[int]]) -> List[int]:
    """The part of ``frame_figures`` that doesn't depend on the order of rows, of the whole frame."""
    return weak_data.added_up([figures[:4] for figures in parts])


class FrameCreate(FrameTask):
    """Drawing the numbers, and a frame of them."""

    def input(self) -> Any:
        """The array, still to be drawn."""
        return self.numbers()

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.persisted(dask.dataframe.from_dask_array(data, columns=weak_data.COLUMNS))

    def seen(self, result: Any) -> List[List[int]]:
        """Figures of every partition."""
        return self.frame_figures(result)

    def check(self, answer: List[List[int]]) -> Answer:
        """Against the numbers drawn once more, and against the distribution's mean."""
        sums = self.drawn(weak_data.drawn_sums)
        count, total = (sum(part[0][which] for part in sums) for which in (0, 1))
        return exactly_and_likely(rows_of(answer), self.drawn_rows(0), count, total)


class FrameBlockwise(FrameTask):
    """One function on every partition."""

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.persisted(data.map_partitions(plus_one))

    def seen(self, result: Any) -> List[List[int]]:
        """Figures of every partition."""
        return self.frame_figures(result)

    def check(self, answer: List[List[int]]) -> Answer:
        """Against the numbers drawn once more, plus one."""
        return exactly(rows_of(answer), self.drawn_rows(1))


def plus_one(frame: Any) -> Any:
    """Of a partition or a group."""
    return frame + 1


class FrameAccess(FrameTask):
    """One row; the original counts 8 bytes."""

    @property
    def nominal_bytes(self) -> int:
        """As the original counts them."""
        return ITEM_BYTES

    def setup(self) -> None:
        """Is there such a row?

        Raises:
            ValueError: no.
        """
        super().setup()
        if self.starts[-1] <= ROW:
            raise ValueError(f"weak-frame-access looks up row {ROW}, the frame has {self.starts[-1]}")

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data.loc[ROW])

    def seen(self, result: Any) -> List[int]:
        """Index and numbers, one row after the other."""
        columns = [result.index.to_numpy(), *(result[name].to_numpy() for name in weak_data.COLUMNS)]
        return [int(number) for row in zip(*columns) for number in row]

    def check(self, answer: List[int]) -> Answer:
        """Against that row of its partition, drawn once more."""
        entropy, shape, start = next(part for part in self.partitions() if part[2] + part[1][0] > ROW)
        (frame,) = self.on_workers(weak_data.drawn_row, [self.context.device], [entropy], [shape], [ROW - start])
        return exactly(answer, [ROW, *frame])


class FrameStd(FrameTask):
    """Standard deviation of every column."""

    @property
    def least_moved_bytes(self) -> int:
        """Partial results."""
        return self.partial_results()

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data.std())

    def seen(self, result: Any) -> List[float]:
        """Plain numbers, in the order of columns."""
        by_name: Dict[str, float] = dict(zip(result.index.tolist(), result.to_numpy().tolist()))
        return [by_name[name] for name in weak_data.COLUMNS]

    def check(self, answer: List[float]) -> Answer:
        """Against exact integer sums."""
        return close(answer, self.deviations())

    def deviations(self) -> List[float]:
        """Of all columns, from exact integer sums."""
        columns = zip(*self.drawn(weak_data.drawn_sums))
        return [deviation(*(sum(figures) for figures in zip(*parts)), sample=True) for parts in columns]


class FrameSeriesStd(FrameStd):
    """Standard deviation of one column."""

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data["col_0"].std())

    def seen(self, result: Any) -> List[float]:
        """A plain number."""
        return [float(result)]

    def check(self, answer: List[float]) -> Answer:
        """Against exact integer sums."""
        return close(answer, self.deviations()[:1])
