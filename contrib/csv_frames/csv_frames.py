"""Summit's dataframe benchmark: reading CSV, nunique, groupby and a join on the index, over chunk sizes.

Source: ``gtc_2020/cudf/cudf_benchmarking.py`` of nvrapids_olcf. ``csv_tables`` writes the files.
"""

import abc
import atexit
import functools
import inspect
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import dask
import dask.dataframe
import distributed
import numpy as np

from gpubench.node.workloads import dask_compat, device
from gpubench.node.workloads.base import Answer, Measurement, UnavailableError, WorkloadContext, added_up, judged

from .csv_tables import Table, joined_figures, read_figures, wholes, written

MEAN_CLOSE = 1e-9
"""Means of numbers in [0, 1): adding up 10⁷ of them in another order is off by 10⁷ · 1.1e-16 of a mean at worst."""


@functools.cache
def folder_in(place: str) -> Path:
    """This process's own folder in a directory that all workers see; it goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix=".gpubench-csv-", dir=place))
    atexit.register(shutil.rmtree, str(folder), ignore_errors=True)
    return folder


def size_seen(path: str) -> int:
    """The size of a file as this process sees it, −1 where there is none."""
    found = Path(path)
    return found.stat().st_size if found.is_file() else -1


def read_csv(path: str, chunk: int, device_name: str) -> Any:
    """The lazy frame in a CSV file, a partition per ``chunk`` bytes; dask_cudf's keyword for that changed in 2024."""
    if device_name == "gpu":
        import dask_cudf

        known = inspect.signature(dask_cudf.read_csv).parameters
        return dask_cudf.read_csv(path, **{"chunksize" if "chunksize" in known else "blocksize": chunk})
    return dask.dataframe.read_csv(path, blocksize=chunk)


class CsvFrames(Measurement):
    """One operation on frames that were read from two CSV files, written once per run."""

    left: Any = None
    right: Any = None

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        rows, columns, ids = (int(params[name]) for name in ("rows", "columns", "ids"))
        self.table = Table(rows, columns, ids, context.seed)
        self.left_path, self.right_path = Path(), Path()
        self.expected: Any = None

    def setup(self) -> None:
        """Write the tables unless a workload before has done so.

        Raises:
            UnavailableError: a worker doesn't see them.
            ValueError: not one row or column, or more columns than there are names.
        """
        if not self.table.rows or not 1 <= self.table.columns <= 260:
            raise ValueError(f"needs a row and 1 to 260 columns: {self.table.rows} rows, {self.table.columns} columns")
        place = self.params["directory"] or self.context.shared or tempfile.gettempdir()
        self.left_path, self.right_path, self.expected = written(self.table, folder_in(place))
        for path in (self.left_path, self.right_path):
            size = size_seen(str(path))
            seen = self.context.client.run(size_seen, str(path))
            blind = sorted(worker for worker, found in seen.items() if found != size)
            if blind:
                raise UnavailableError(f"{', '.join(blind)} can't read {place}: name a shared one as `directory`")

    @property
    def nominal_bytes(self) -> int:
        """The left table's bytes in memory."""
        return self.table.left_bytes

    @abc.abstractmethod
    def question(self) -> List[Any]:
        """The lazy results that are timed."""

    def read(self, path: Path) -> Any:
        """The lazy frame in a file, a partition per ``chunk`` bytes."""
        return read_csv(str(path), int(self.params["chunk"]), self.context.device)

    def placed(self, name: str, path: Path, index: Optional[str]) -> Any:
        """The frame in a file, in ``partitions`` if given; each worker has an equal contiguous share of them."""
        client, workers = self.context.client, self.context.workers
        frame = self.read(path)
        if self.params["partitions"]:
            frame = frame.repartition(npartitions=int(self.params["partitions"]))
        delayed = frame.to_delayed()
        futures = []
        for number, part in enumerate(delayed):
            worker = workers[number * len(workers) // len(delayed)]
            table = client.compute(part, workers=[worker])
            key = f"{self.name}-{name}-{number}"
            futures.append(client.submit(indexed, table, index, key=key, workers=[worker]))
        lazy = dask.dataframe.from_delayed(futures, meta=indexed(frame._meta, index), verify_meta=False)
        held = client.persist(lazy)
        distributed.wait(held)
        return held

    def prepare(self) -> None:
        """Read the left table."""
        self.teardown()
        self._round += 1
        self.left = self.placed("left", self.left_path, None)

    def once(self) -> Tuple[float, List[Any]]:
        """Build the graph, then compute it here or leave its result with the workers, as ``result`` says."""
        client = self.context.client
        with dask.config.set(dask_compat.BY_TASKS):
            start = time.perf_counter()
            if self.params["result"] == "compute":
                answer = list(client.gather(client.compute(self.question())))
            else:
                answer = list(client.persist(self.question()))
                distributed.wait(answer)
            device.synchronize_workers(client, self.context.device)
            return time.perf_counter() - start, answer

    def here(self, answer: List[Any]) -> List[Any]:
        """Results in this process, wherever they are."""
        if self.params["result"] == "compute":
            return answer
        return list(self.context.client.gather(self.context.client.compute(answer)))

    def teardown(self) -> None:
        """Drop the frames; the files stay for the next workload."""
        self.left = self.right = None


def indexed(frame: Any, index: Optional[str]) -> Any:
    """The frame, with one of its columns as index."""
    return frame.set_index(index) if index else frame


def frame_figures(frame: Any, names: List[str], device_name: str) -> List[int]:
    """``read_figures`` of one partition."""
    rows = device.host(device_name, frame["row"].values).astype("int64")
    return read_figures(rows, wholes(device.host(device_name, frame[names].values)))


def of_partitions(client: Any, frame: Any, figure: Any) -> List[Any]:
    """``figure(partition)`` of every partition of a frame, taken where it lies."""
    return list(client.gather(client.compute([dask.delayed(figure, pure=False)(part) for part in frame.to_delayed()])))


class CsvRead(CsvFrames):
    """Reading itself: nothing is there before the clock starts."""

    plan = {
        "params": {
            "rows": {
                "kind": "count",
                "default": 2000,
                "text": "rows of the left table; the right one has a tenth (size 1G of the original: 194000)",
            },
            "columns": {"kind": "count", "default": 260, "text": "float columns of each table, 260 at most"},
            "ids": {
                "kind": "count",
                "default": 1000,
                "text": "mean of the Poisson distribution that ids are drawn from (num_ids)",
            },
            "chunk": {"kind": "size", "default": "64MB", "text": "bytes of the file per partition (--read_chunk_mb)"},
            "result": {
                "kind": "choice",
                "default": "persist",
                "choices": ["compute", "persist"],
                "text": "keep the frame in the workers, or only count its rows",
            },
            "directory": {
                "kind": "path",
                "default": "",
                "text": "where the files are written: seen by all workers; the run's own if empty",
            },
        },
        "held": "rows * (columns + 2) * 8 / workers + 1.5 * threads * min(chunk, rows * (columns + 2) * 17)",
        "grows": {"rows": 1.0, "chunk": 1.0},
        "source": "Summit GTC 2020 cudf_benchmarking.py read_csv",
        "timed": "building the graph of reading the left table's file, and persisting it or counting its rows, waiting",
        "counted": "rows × (columns + 2) × 8, the left table in memory",
        "oracle": "exact row count; with `persist` exact sums of row numbers and of all floats too, from the generator",
    }
    """Held: the left table, and a chunk per thread as text (17 bytes a float) and as numbers (half of that)."""

    def prepare(self) -> None:
        """Nothing to read before the clock: only a frame of the last repetition to drop."""
        self.teardown()

    def question(self) -> List[Any]:
        """The frame in the workers, or how many rows it has, without keeping it.

        Partition by partition: of ``len(frame)`` newer versions of Dask read one column only.
        """
        frame = self.read(self.left_path)
        if self.params["result"] == "compute":
            return [dask.delayed(sum)([dask.delayed(len)(part) for part in frame.to_delayed()])]
        return [frame]

    def check(self, answer: List[Any]) -> Answer:
        """Rows; where the frame is there, the sums of row numbers and of all floats too: exact."""
        if self.params["result"] == "compute":
            found, expected = [int(answer[0])], self.expected.left[:1]
        else:
            figure = functools.partial(frame_figures, names=self.table.left_names, device_name=self.context.device)
            figures = of_partitions(self.context.client, answer[0], figure)
            found, expected = added_up(figures), self.expected.left
        return judged(found == expected, {"figures": found, "expected_figures": expected})


class Partials(CsvFrames):
    """Operations that reduce every partition to a partial result."""

    @property
    def least_moved_bytes(self) -> int:
        """One number from every worker with partitions but one."""
        holders = dask_compat.partition_holders(self.context.client, self.left)
        owners = {worker for held in holders if len(held) == 1 for worker in held}
        return 8 * max(0, len(owners) - 1)


class NUnique(Partials):
    """How many different ids there are."""

    plan = {
        "params": {
            "rows": {
                "kind": "count",
                "default": 2000,
                "text": "rows of the left table; the right one has a tenth (size 1G of the original: 194000)",
            },
            "columns": {"kind": "count", "default": 260, "text": "float columns of each table, 260 at most"},
            "ids": {
                "kind": "count",
                "default": 1000,
                "text": "mean of the Poisson distribution that ids are drawn from (num_ids)",
            },
            "chunk": {"kind": "size", "default": "64MB", "text": "bytes of the file per partition (--read_chunk_mb)"},
            "result": {
                "kind": "choice",
                "default": "compute",
                "choices": ["compute", "persist"],
                "text": "bring the result to the client, or leave it with the workers (--persist_instead_of_compute)",
            },
            "directory": {
                "kind": "path",
                "default": "",
                "text": "where the files are written: seen by all workers; the run's own if empty",
            },
            "partitions": {
                "kind": "count",
                "default": 0,
                "text": "partitions of each table, made before the clock; 0: as read (--num_partitions)",
            },
        },
        "held": "rows * (columns + 2) * 8 / workers + 1.5 * threads * min(chunk, rows * (columns + 2) * 17)",
        "grows": {"rows": 1.0, "chunk": 1.0},
        "source": "Summit GTC 2020 cudf_benchmarking.py groupby, unique ids",
        "timed": "building the graph of id.nunique() of a frame that lies on the workers, computing or persisting it",
        "counted": "rows × (columns + 2) × 8, the left table in memory",
        "oracle": "exactly as many ids as the generator drew",
    }
    """Held: the left table, and a chunk per thread as text (17 bytes a float) and as numbers (half of that)."""

    def question(self) -> List[Any]:
        """What is timed."""
        return [self.left["id"].nunique()]

    def check(self, answer: List[Any]) -> Answer:
        """As many as the generator drew."""
        found, expected = int(self.here(answer)[0]), len(self.expected.groups)
        return judged(found == expected, {"ids": found, "expected_ids": expected})


class FrameGroupby(Partials):
    """Smallest, largest, mean and count of every column by id: four groupbys of one graph, as the original."""

    plan = {
        "params": {
            "rows": {
                "kind": "count",
                "default": 2000,
                "text": "rows of the left table; the right one has a tenth (size 1G of the original: 194000)",
            },
            "columns": {"kind": "count", "default": 260, "text": "float columns of each table, 260 at most"},
            "ids": {
                "kind": "count",
                "default": 1000,
                "text": "mean of the Poisson distribution that ids are drawn from (num_ids)",
            },
            "chunk": {"kind": "size", "default": "64MB", "text": "bytes of the file per partition (--read_chunk_mb)"},
            "result": {
                "kind": "choice",
                "default": "compute",
                "choices": ["compute", "persist"],
                "text": "bring the result to the client, or leave it with the workers (--persist_instead_of_compute)",
            },
            "directory": {
                "kind": "path",
                "default": "",
                "text": "where the files are written: seen by all workers; the run's own if empty",
            },
            "partitions": {
                "kind": "count",
                "default": 0,
                "text": "partitions of each table, made before the clock; 0: as read (--num_partitions)",
            },
        },
        "held": "rows * (columns + 2) * 8 / workers + 1.5 * threads * min(chunk, rows * (columns + 2) * 17)",
        "grows": {"rows": 1.0, "chunk": 1.0},
        "source": "Summit GTC 2020 cudf_benchmarking.py groupby",
        "timed": "building the graph of min, max, mean and count of all columns by id, computing or persisting it",
        "counted": "rows × (columns + 2) × 8, the left table in memory",
        "oracle": "ids, counts, minima and maxima exactly, means to 1e-9, from the generator",
    }
    """Held: the left table, and a chunk per thread as text (17 bytes a float) and as numbers (half of that)."""

    def question(self) -> List[Any]:
        """What is timed."""
        groups = self.left.groupby("id")
        return [groups.min(), groups.max(), groups.mean(), groups.count()]

    def check(self, answer: List[Any]) -> Answer:
        """Ids, counts, smallest and largest exactly, means to 1e-9."""
        names = self.table.left_names
        smallest, largest, means, counts = (frame.sort_index() for frame in self.here(answer))
        ids = sorted(self.expected.groups)
        groups = [self.expected.groups[number] for number in ids]
        host = functools.partial(device.host, self.context.device)
        ids_agree = all(host(one.index.values).tolist() == ids for one in (smallest, largest, means, counts))
        details: Dict[str, Any] = {"ids": len(counts), "expected_ids": len(ids), "ids_agree": ids_agree}
        if not ids_agree:
            return judged(False, details)
        expected_means = np.array([total / count for count, _, _, total in groups])
        off = float(np.abs(host(means[names].values) - expected_means).max())
        wrong = {
            "counts": host(counts[names].values) != np.array([[group[0]] for group in groups]),
            "smallest": wholes(host(smallest[names].values)) != np.array([group[1] for group in groups]),
            "largest": wholes(host(largest[names].values)) != np.array([group[2] for group in groups]),
        }
        details.update({f"wrong_{name}": int(where.sum()) for name, where in wrong.items()}, means_off_by=off)
        return judged(off <= MEAN_CLOSE and not any(where.any() for where in wrong.values()), details)


def index_figures(frame: Any, left: List[str], right: List[str], device_name: str) -> List[int]:
    """``joined_figures`` of one partition of the joined frame."""
    rows = device.host(device_name, frame.index.values).astype("int64")
    sides = [wholes(device.host(device_name, frame[names].values)) for names in (left, right)]
    return joined_figures(rows, sides, sides[0][:, 0], sides[1][:, 0])


def index_values(frame: Any, device_name: str) -> Any:
    """The index in main memory."""
    return device.host(device_name, frame.index.values)


class IndexMerge(CsvFrames):
    """The inner join of both tables on their index, the number of the row.

    Dask doesn't know where which numbers lie, as in the original, so it shuffles.
    """

    plan = {
        "params": {
            "rows": {
                "kind": "count",
                "default": 2000,
                "text": "rows of the left table; the right one has a tenth (size 1G of the original: 194000)",
            },
            "columns": {"kind": "count", "default": 260, "text": "float columns of each table, 260 at most"},
            "ids": {
                "kind": "count",
                "default": 1000,
                "text": "mean of the Poisson distribution that ids are drawn from (num_ids)",
            },
            "chunk": {"kind": "size", "default": "64MB", "text": "bytes of the file per partition (--read_chunk_mb)"},
            "result": {
                "kind": "choice",
                "default": "compute",
                "choices": ["compute", "persist"],
                "text": "bring the result to the client, or leave it with the workers (--persist_instead_of_compute)",
            },
            "directory": {
                "kind": "path",
                "default": "",
                "text": "where the files are written: seen by all workers; the run's own if empty",
            },
            "partitions": {
                "kind": "count",
                "default": 0,
                "text": "partitions of each table, made before the clock; 0: as read (--num_partitions)",
            },
        },
        "held": "2.4 * rows * (columns + 2) * 8 / workers + 1.5 * threads * min(chunk, rows * (columns + 2) * 17)",
        "grows": {"rows": 1.0, "chunk": 1.0},
        "source": "Summit GTC 2020 cudf_benchmarking.py join-indexed",
        "timed": "building the graph of the inner join of both tables on their index, computing or persisting it",
        "counted": "(1.1 × rows) × (columns + 2) × 8: both tables in memory",
        "oracle": "exact row count, exact sums of row numbers, of all floats and of products of paired ones",
    }
    """Held: both tables (the right one is a tenth), both shuffled, and a result of a tenth with twice the columns."""

    def prepare(self) -> None:
        """Read both tables."""
        self.teardown()
        self._round += 1
        self.left = self.placed("left", self.left_path, "row")
        self.right = self.placed("right", self.right_path, "row")

    @property
    def nominal_bytes(self) -> int:
        """Both tables' bytes in memory."""
        return self.table.left_bytes + self.table.right_bytes

    def question(self) -> List[Any]:
        """What is timed."""
        how = dask_compat.task_shuffle(self.left.merge)
        return [self.left.merge(self.right, left_index=True, right_index=True, how="inner", **how)]

    def check(self, answer: List[Any]) -> Answer:
        """Rows, sums of row numbers and of all floats, and of the products of each pair's first floats: exact."""
        figure = functools.partial(
            index_figures, left=self.table.left_names, right=self.table.right_names, device_name=self.context.device
        )
        if self.params["result"] == "compute":
            found = figure(answer[0])
        else:
            found = added_up(of_partitions(self.context.client, answer[0], figure))
        expected = self.expected.joined
        return judged(found == expected, {"figures": found, "expected_figures": expected})

    @property
    def least_moved_bytes(self) -> int:
        """The shorter row of every pair whose two rows lie on different workers (Dask moves rows whole)."""
        client = self.context.client
        sides = []
        for frame in (self.left, self.right):
            figure = functools.partial(index_values, device_name=self.context.device)
            sides.append(list(zip(of_partitions(client, frame, figure), dask_compat.partition_holders(client, frame))))
        pairs = sum(
            len(np.intersect1d(one, other, assume_unique=True))
            for one, here in sides[0]
            for other, there in sides[1]
            if not here & there
        )
        return pairs * self.table.columns * 8
