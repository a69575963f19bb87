"""Reading Parquet files into memory: dask-cuda's ``read_parquet``."""

import functools
import importlib.util
from pathlib import Path
from typing import Any, Callable, List, Tuple

from gpubench.node.workloads import device
from gpubench.node.workloads.base import Answer, UnavailableError, WorkloadContext, judged
from gpubench.node.workloads.lazy import LazyMeasurement

ROUNDING = 1e-9
"""Between two orders of adding up one column of floats."""


def own_folder(dask_worker: Any) -> str:
    return str(dask_worker.local_directory)


def read_figures(frame: Any) -> List[int]:
    """Rows, and the sums of the numeric columns, of one partition."""
    numbers = frame.select_dtypes("number")
    return [len(frame), *(round(float(numbers[name].sum())) for name in numbers.columns)]


class ReadParquet(LazyMeasurement):
    """Files that all workers see: a user's, or written once where the first worker keeps its own.

    They are read several times, so from the page cache unless the file system or their size prevents it.
    """

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._folder = str(params["path"])
        self._is_ours = not self._folder
        self._files: List[Tuple[str, int]] = []
        self._expected: List[int] = []

    @property
    def nominal_bytes(self) -> int:
        return sum(size for _, size in self._files)

    def setup(self) -> None:
        """Write the files unless they are given; see that all workers see the same; take their figures without Dask.

        Raises:
            UnavailableError: no pyarrow, no file, or a worker that doesn't see the files.
        """
        if importlib.util.find_spec("pyarrow") is None:
            raise UnavailableError("read-parquet needs pyarrow, and this image has none")
        from gpubench.node.workloads import parquet_files

        client, first = self.context.client, self.context.workers[0]
        if self._is_ours:
            kept = client.run(own_folder, workers=[first])[first]
            self._folder = str(Path(kept) / f"read-parquet-{self._token}")
            write = functools.partial(parquet_files.write, rows=int(self.params["rows_per_file"]), folder=self._folder)
            client.gather(client.map(write, range(int(self.params["files"])), pure=False, workers=[first]))
        seen = client.run(parquet_files.listed, self._folder)
        self._files = seen[first]
        blind = sorted(worker for worker, files in seen.items() if files != self._files)
        if blind or not self._files:
            raise UnavailableError(
                f"{len(blind) or len(seen)} of {len(seen)} workers don't see the Parquet files in {self._folder} "
                f"({', '.join(blind or sorted(seen))}); give a `path` on a file system that all nodes share"
            )
        parts = client.gather(client.map(parquet_files.figures, self._paths(), pure=False))
        self._expected = [sum(column) for column in zip(*parts)]

    def _paths(self) -> List[str]:
        return [str(Path(self._folder) / name) for name, _ in self._files]

    def prepare(self) -> None:
        """The files lie where they lie."""

    def lazy(self) -> Any:
        """Find out what there is to read; all of it."""
        return device.read_parquet(self._paths(), self.context.device)

    def figures_of(self) -> Callable[[Any], List[int]]:
        return read_figures

    def check(self, answer: List[List[int]]) -> Answer:
        """Rows exactly, sums to the rounding of their order and of one unit per partition."""
        totals = [sum(column) for column in zip(*answer)]
        near = all(
            abs(total - expected) <= ROUNDING * abs(expected) + len(answer) + len(self._files)
            for total, expected in zip(totals[1:], self._expected[1:])
        )
        is_ok = len(totals) == len(self._expected) and totals[0] == self._expected[0] and near
        details = {"rows": totals[0], "expected_rows": self._expected[0]}
        details.update({"sums": totals[1:], "expected_sums": self._expected[1:]})
        return judged(is_ok, details)

    def teardown(self) -> None:
        if self._is_ours and self._folder:
            from gpubench.node.workloads import parquet_files

            self.context.client.run(parquet_files.remove, self._folder, workers=self.context.workers[:1])
            self._folder = ""
