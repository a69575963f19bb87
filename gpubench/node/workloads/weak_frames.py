"""dask-bench's weak scaling on dataframes: nine tasks of ``assess_dataframes``."""

import collections
import contextlib
import warnings
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import dask
import dask.dataframe
import numpy as np

from gpubench.node.workloads import dask_compat, frames, weak_data
from gpubench.node.workloads.base import Answer, UnavailableError, WorkloadContext, added_up
from gpubench.node.workloads.catalogue.weak import COLUMNS, ITEM_BYTES, ROW_BYTES, partition_starts
from gpubench.node.workloads.random_blocks import drawn
from gpubench.node.workloads.weak_task import LEAST, WeakTask, close, deviation, exactly, exactly_and_likely, plus_one

FRAME_ROW = 42
"""The row that the original looks up."""


class FrameTask(WeakTask):
    """A frame of problem_size rows per thread, six columns of int64, two partitions per thread.

    The original persists it once and lets all tasks work on it; here each repetition has its own, because workers keep
    copies of what they fetched.
    """

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self.starts = partition_starts(self.problem_size, self.threads)
        """First row of every partition, and the number of rows."""

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
            self.context, self.name, weak_data.integers_block, self.entropy, chunks, is_settled=False, dtype="int64"
        )

    def input(self) -> Any:
        """On the workers: where Dask puts it, or in equal contiguous shares."""
        if not self.is_persisted:
            return self.persisted(dask.dataframe.from_dask_array(self.numbers(), columns=weak_data.COLUMNS))
        device_name = self.context.device
        parts = [(weak_data.drawn_frame, device_name, *part) for part in self.partitions()]
        divisions = (*self.starts[:-1], self.starts[-1] - 1)
        meta = weak_data.drawn_frame(device_name, (0,), (1, COLUMNS), 0)
        return frames.settled(self.context, self.name, parts, meta, divisions)

    def owners(self) -> List[str]:
        """The worker that holds each partition of the input, empty where several do."""
        held = dask_compat.partition_holders(self.context.client, self._data)
        return [next(iter(workers)) if len(workers) == 1 else "" for workers in held]

    def drawn(self, function: Any, *more: Any) -> List[Any]:
        """``function`` of every partition's device, entropy, shape and whatever ``more`` gives for each."""
        parts = self.partitions()
        entropies, shapes = ([part[which] for part in parts] for which in (0, 1))
        return self.on_workers(function, [self.context.device] * len(parts), entropies, shapes, *more)

    def groups(self) -> List[Dict[str, List[int]]]:
        return self.drawn(weak_data.drawn_groups)

    def drawn_rows(self, added: int) -> List[int]:
        """``row_figures`` of the whole input, drawn once more, after ``added`` was added to every number."""
        starts = list(self.starts[:-1])
        return added_up(self.drawn(weak_data.drawn_row_figures, starts, [added] * len(starts)))

    def frame_figures(self, held: Any) -> List[List[int]]:
        futures = dask_compat.partition_futures(self.context.client, held)
        return self.on_workers(weak_data.frame_figures, futures, [self.context.device] * len(futures))


def rows_of(parts: List[List[int]]) -> List[int]:
    """The part of ``frame_figures`` that doesn't depend on the order of rows, of the whole frame."""
    return added_up([figures[:4] for figures in parts])


class KeptFrame(FrameTask):
    """A task whose result stays on the workers: figures are taken there, partition by partition."""

    is_kept = True

    def seen(self, result: Any) -> List[List[int]]:
        return self.frame_figures(result)


class FrameReduction(FrameTask):
    @property
    def least_moved_bytes(self) -> int:
        """A number from each worker with partitions but the one that puts the numbers together."""
        return ITEM_BYTES * max(0, len(set(self.owners()) - {""}) - 1)


class FrameCreate(KeptFrame):
    lazy = staticmethod(lambda x: dask.dataframe.from_dask_array(x, columns=weak_data.COLUMNS))

    def input(self) -> Any:
        return self.numbers()

    def check(self, answer: List[List[int]]) -> Answer:
        sums = self.drawn(weak_data.drawn_sums)
        count, total = (sum(part[0][which] for part in sums) for which in (0, 1))
        return exactly_and_likely(rows_of(answer), self.drawn_rows(0), count, total)


class FrameBlockwise(KeptFrame):
    lazy = staticmethod(lambda df: df.map_partitions(plus_one))

    def check(self, answer: List[List[int]]) -> Answer:
        return exactly(rows_of(answer), self.drawn_rows(1))


class FrameAccess(FrameTask):
    """One row; the original counts 8 bytes."""

    lazy = staticmethod(lambda df: df.loc[FRAME_ROW])

    @property
    def nominal_bytes(self) -> int:
        return ITEM_BYTES

    def setup(self) -> None:
        super().setup()
        if self.starts[-1] <= FRAME_ROW:
            raise ValueError(f"weak-frame-access looks up row {FRAME_ROW}, the frame has {self.starts[-1]}")

    def seen(self, result: Any) -> List[int]:
        """Index and numbers, one row after the other."""
        columns = [result.index.to_numpy(), *(result[name].to_numpy() for name in weak_data.COLUMNS)]
        return [int(number) for row in zip(*columns) for number in row]

    def check(self, answer: List[int]) -> Answer:
        entropy, shape, start = next(part for part in self.partitions() if part[2] + part[1][0] > FRAME_ROW)
        (frame,) = self.on_workers(weak_data.drawn_row, [self.context.device], [entropy], [shape], [FRAME_ROW - start])
        return exactly(answer, [FRAME_ROW, *frame])


class FrameStd(FrameReduction):
    lazy = staticmethod(lambda df: df.std())
    seen = staticmethod(lambda result: [float(result[name]) for name in weak_data.COLUMNS])

    def setup(self) -> None:
        """Raise UnavailableError where Dask can't build this graph: it iterates an index, which cuDF refuses."""
        super().setup()
        if self.context.device == "gpu":
            sample = weak_data.drawn_frame("gpu", (0,), (LEAST, COLUMNS), 0)
            try:
                self.lazy(dask.dataframe.from_pandas(sample, npartitions=1))
            except TypeError as error:
                why = f"dask {dask.__version__} can't build df.std() of a frame on a GPU"
                raise UnavailableError(f"{why}: {error}") from None

    def check(self, answer: List[float]) -> Answer:
        return close(answer, self.deviations())

    def deviations(self) -> List[float]:
        columns = zip(*self.drawn(weak_data.drawn_sums))
        return [deviation(*(sum(figures) for figures in zip(*parts)), sample=True) for parts in columns]


class FrameSeriesStd(FrameStd):
    lazy = staticmethod(lambda df: df["col_0"].std())
    seen = staticmethod(lambda result: [float(result)])

    def check(self, answer: List[float]) -> Answer:
        return close(answer, self.deviations()[:1])


KEY = "col_1"


class ShuffleTask(FrameTask):
    """Rows meet others of their key, by the way that the parameter says."""

    @property
    def is_logged(self) -> bool:
        """Whatever moves passes the workers' transfer logs."""
        return bool(self.params["shuffle"] == "tasks")

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        """The shuffle's method; and without what Dask says about a function whose result it has to guess."""
        with dask.config.set(dask_compat.BY_TASKS if self.is_logged else {}), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    @property
    def least_moved_bytes(self) -> int:
        """Of the rows that must move so that each key's rows come together, wherever that is."""
        if not self.is_logged:
            return 0
        rows: Dict[str, Any] = collections.defaultdict(lambda: np.zeros(weak_data.UPPER, dtype="int64"))
        for owner, group in zip(self.owners(), self.groups()):
            if owner:
                rows[owner][group["key"]] += np.asarray(group["count"])
        if not rows:
            return 0
        held = np.stack(list(rows.values()))
        return int((held.sum(axis=0) - held.max(axis=0)).sum()) * ROW_BYTES


class FrameGroupbyMean(FrameReduction):
    columns: Sequence[str] = ("col_0",)

    lazy = staticmethod(lambda df: df.groupby(KEY)["col_0"].mean())

    def seen(self, result: Any) -> List[List[float]]:
        """Keys in ascending order, and means of every column in that order."""
        result = result.sort_index()
        frame = result if result.ndim == 2 else result.to_frame("col_0")
        return [frame.index.to_numpy().tolist(), *(frame[name].to_numpy().tolist() for name in self.columns)]

    def check(self, answer: List[List[float]]) -> Answer:
        sums: Dict[str, Any] = {name: np.zeros(weak_data.UPPER, dtype="int64") for name in ("count", *self.columns)}
        for group in self.groups():
            for name, total in sums.items():
                total[group["key"]] += np.asarray(group[name])
        keys = np.nonzero(sums["count"])[0]
        same_groups = answer[0] == keys.tolist()
        expected = [mean for name in self.columns for mean in (sums[name][keys] / sums["count"][keys]).tolist()]
        answered = close([mean for column in answer[1:] for mean in column], expected)
        details = {"groups": len(answer[0]), "expected_groups": len(keys), "same_groups": same_groups}
        return Answer(answered.status if same_groups else "wrong", {**details, **answered.details})


class FrameGroupbyMeans(FrameGroupbyMean):
    """Means of two columns: selected by a list, because pandas 2 refuses the original's tuple."""

    columns = ("col_0", "col_2")
    lazy = staticmethod(lambda df: df.groupby(KEY)[["col_0", "col_2"]].mean())


class FrameGroupbyApply(ShuffleTask):
    """A Python function of every group: here, nearly of every row."""

    lazy = staticmethod(lambda df: df.groupby(KEY).apply(plus_one))

    def seen(self, result: Any) -> Tuple[List[int], bool]:
        """Figures of the rows, and whether each stands below its own key where keys are shown.

        pandas 1.5 keeps the index and applies the function to the key as well, 2 adds the keys to the index, and 3
        leaves the key out of what the function gets.
        """
        index = result.index
        keys: Any = index.get_level_values(0).to_numpy() if index.nlevels > 1 else None
        if KEY not in result.columns:
            result = result.assign(**{KEY: keys + 1})
        plain = result.copy(deep=False)
        plain.index = index.get_level_values(-1)  # cuDF has no set_axis
        is_below = keys is None or bool((plain[KEY].to_numpy() == keys + 1).all())
        return weak_data.frame_figures(plain, self.context.device)[:4], is_below

    def check(self, answer: Tuple[List[int], bool]) -> Answer:
        figures, is_below = answer
        rows = exactly(figures, self.drawn_rows(1))
        return Answer(rows.status if is_below else "wrong", {**rows.details, "below_their_keys": is_below})


class FrameSort(ShuffleTask, KeptFrame):
    lazy = staticmethod(lambda df: df.sort_values(KEY))

    def check(self, answer: List[List[int]]) -> Answer:
        """The same rows; ascending in every partition, and from each to the next that has rows."""
        rows = exactly(rows_of(answer), self.drawn_rows(0))
        filled = [figures for figures in answer if figures[0]]
        is_ordered = all(figures[4] for figures in filled)
        is_ordered = is_ordered and all(before[6] <= after[5] for before, after in zip(filled, filled[1:]))
        return Answer(rows.status if is_ordered else "wrong", {**rows.details, "ordered": is_ordered})
