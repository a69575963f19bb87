"""dask-bench's dataframe tasks that group or order rows."""

import collections
import contextlib
import warnings
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import dask
import numpy as np

from gpubench.workloads import weak_data
from gpubench.workloads.base import Answer
from gpubench.workloads.catalogue.weak import ROW_BYTES
from gpubench.workloads.weak import close, exactly
from gpubench.workloads.weak_frames import FrameTask, plus_one, rows_of

KEY = "col_1"


class GroupTask(FrameTask):
    """Rows are told apart by the values of one column."""

    def groups(self) -> List[Dict[str, List[int]]]:
        """``drawn_groups`` of every partition."""
        return self.drawn(weak_data.drawn_groups)


class ShuffleTask(GroupTask):
    """Rows meet others of their key, by the way that the parameter says."""

    @property
    def is_logged(self) -> bool:
        """Whatever moves passes the workers' transfer logs."""
        return bool(self.params["shuffle"] == "tasks")

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        """The shuffle's method; and without what Dask says about a function whose result it has to guess."""
        chosen = {"dataframe.shuffle.method": "tasks"} if self.is_logged else {}
        with dask.config.set(chosen), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    def rows_apart(self) -> int:
        """Bytes of the rows that must move so that each key's rows come together, wherever that is."""
        if not self.is_logged:
            return 0
        rows: Dict[str, Any] = collections.defaultdict(lambda: np.zeros(weak_data.UPPER, dtype="int64"))
        for owner, found in zip(self.owners(), self.groups()):
            if owner:
                rows[owner][found["key"]] += np.asarray(found["count"])
        if not rows:
            return 0
        held = np.stack(list(rows.values()))
        return int((held.sum(axis=0) - held.max(axis=0)).sum()) * ROW_BYTES


class FrameGroupbyMean(GroupTask):
    """Means of one column in the groups of another."""

    columns: Sequence[str] = ("col_0",)

    @property
    def least_moved_bytes(self) -> int:
        """Partial results."""
        return self.partial_results()

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data.groupby(KEY)["col_0"].mean())

    def seen(self, result: Any) -> List[List[float]]:
        """Keys in ascending order, and means of every column in that order."""
        result = result.sort_index()
        frame = result if result.ndim == 2 else result.to_frame("col_0")
        return [frame.index.to_numpy().tolist(), *(frame[name].to_numpy().tolist() for name in self.columns)]

    def check(self, answer: List[List[float]]) -> Answer:
        """Against sums and counts per key."""
        sums: Dict[str, Any] = {name: np.zeros(weak_data.UPPER, dtype="int64") for name in ("count", *self.columns)}
        for found in self.groups():
            for name, total in sums.items():
                total[found["key"]] += np.asarray(found[name])
        keys = np.nonzero(sums["count"])[0]
        same_groups = answer[0] == keys.tolist()
        expected = [mean for name in self.columns for mean in (sums[name][keys] / sums["count"][keys]).tolist()]
        answered = close([mean for column in answer[1:] for mean in column], expected)
        details = {"groups": len(answer[0]), "expected_groups": len(keys), "same_groups": same_groups}
        return Answer(answered.status if same_groups else "wrong", {**details, **answered.details})


class FrameGroupbyMeans(FrameGroupbyMean):
    """Means of two columns: selected by a list, because pandas 2 refuses the original's tuple."""

    columns = ("col_0", "col_2")

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data.groupby(KEY)[["col_0", "col_2"]].mean())


class FrameGroupbyApply(ShuffleTask):
    """A Python function of every group: here, nearly of every row."""

    @property
    def least_moved_bytes(self) -> int:
        """Rows whose key is on another worker too."""
        return self.rows_apart()

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.computed(data.groupby(KEY).apply(plus_one))

    def seen(self, result: Any) -> Tuple[List[int], bool]:
        """Figures of the rows, and whether each stands below its own key where keys are shown.

        pandas 1.5 keeps the index and applies the function to the key as well, 2 adds the keys to the index, and 3
        leaves the key out of what the function gets.
        """
        index = result.index
        keys: Any = index.get_level_values(0).to_numpy() if index.nlevels > 1 else None
        if KEY not in result.columns:
            result = result.assign(**{KEY: keys + 1})
        plain = result.set_axis(index.get_level_values(-1), axis=0)
        is_below = keys is None or bool((plain[KEY].to_numpy() == keys + 1).all())
        return weak_data.frame_figures(plain, self.context.device)[:4], is_below

    def check(self, answer: Tuple[List[int], bool]) -> Answer:
        """Against the numbers drawn once more, plus one."""
        figures, is_below = answer
        rows = exactly(figures, self.drawn_rows(1))
        return Answer(rows.status if is_below else "wrong", {**rows.details, "below_their_keys": is_below})


class FrameSort(ShuffleTask):
    """All rows in the order of one column."""

    @property
    def least_moved_bytes(self) -> int:
        """Rows whose key is on another worker too."""
        return self.rows_apart()

    def operation(self, data: Any) -> Any:
        """What is timed."""
        return self.persisted(data.sort_values(KEY))

    def seen(self, result: Any) -> List[List[int]]:
        """Figures of every partition."""
        return self.frame_figures(result)

    def check(self, answer: List[List[int]]) -> Answer:
        """The same rows; ascending in every partition, and from each to the next that has rows."""
        rows = exactly(rows_of(answer), self.drawn_rows(0))
        filled = [figures for figures in answer if figures[0]]
        is_ordered = all(figures[4] for figures in filled)
        is_ordered = is_ordered and all(before[6] <= after[5] for before, after in zip(filled, filled[1:]))
        return Answer(rows.status if is_ordered else "wrong", {**rows.details, "ordered": is_ordered})
