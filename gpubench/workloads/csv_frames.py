"""Summit's dataframe benchmark: reading CSV, nunique, groupby and a join on the index, over chunk sizes.

What must come out of its tables follows from the generator alone. Source: ``gtc_2020/cudf/cudf_benchmarking.py`` of
nvrapids_olcf, which writes ``dask.datasets.timeseries``: float columns named by a prefix and a letter, and an id drawn
from a Poisson distribution. Its right table has a tenth of the rows, columns of other names and no id. There the rows'
numbers start again in every partition; here a column holds each row's own number, so that an inner join on it has one
answer: every tenth row of the left table finds a partner.

Every float is a whole number of 10⁻¹⁴, written with all its digits, so that it can be had back exactly from what was
read, and every line of a table has the same length.
"""

import abc
import atexit
import dataclasses
import functools
import shutil
import string
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import dask
import dask.dataframe
import distributed
import numpy as np

from gpubench.workloads import dask_compat, device
from gpubench.workloads.base import WRAP, Answer, Measurement, UnavailableError, WorkloadContext, added_up, judged

DIGITS = 14
SCALE = 10**DIGITS
STEP = 10
"""Every tenth row of the left table has a partner in the right one."""
PART_ROWS = 10_000
ROW_DIGITS = 12
ID_DIGITS = 7


@dataclasses.dataclass(frozen=True)
class Table:
    """Sizes of the left table, which fix the right one, and the seed of all numbers in them."""

    rows: int
    columns: int
    ids: int
    seed: int

    @property
    def left_names(self) -> List[str]:
        """Float columns: ``a_a a_b …``, 260 of them at most; without the bar one of them would be called ``id``."""
        return [f"{a}_{b}" for a in string.ascii_lowercase[:10] for b in string.ascii_lowercase][: self.columns]

    @property
    def right_names(self) -> List[str]:
        """Float columns: ``q_a q_b …``."""
        return [f"{a}_{b}" for a in string.ascii_lowercase[-10:] for b in string.ascii_lowercase][: self.columns]

    @property
    def right_rows(self) -> int:
        """Rows with the numbers 0, 10, 20 …"""
        return -(-self.rows // STEP)

    @property
    def left_bytes(self) -> int:
        """Of the left table in memory: row numbers, ids and floats, 8 bytes each."""
        return self.rows * (self.columns + 2) * 8

    @property
    def right_bytes(self) -> int:
        """Of the right table in memory."""
        return self.right_rows * (self.columns + 1) * 8


@dataclasses.dataclass
class ExpectedTables:
    """What reading, grouping and joining must give; sums are of whole numbers of 10⁻¹⁴, modulo 2⁶⁴.

    ``left`` and ``joined`` are (rows, sum of row numbers, sum of all floats). ``joined`` has the sum of the products of
    each pair's first floats too, which changes when rows are paired wrongly. ``groups`` has (count, smallest, largest,
    sum) by id, the last three for every float column; the sums are float64, in the numbers' own unit.
    """

    left: List[int]
    joined: List[int]
    groups: Dict[int, Tuple[int, Any, Any, Any]]


def parts(table: Table) -> Iterator[Tuple[Any, Any, Any, Any, Any]]:
    """(row numbers, ids, left's floats, right's row numbers, right's floats); floats as whole numbers of 10⁻¹⁴."""
    for first in range(0, table.rows, PART_ROWS):
        rows: Any = np.arange(first, min(first + PART_ROWS, table.rows), dtype="int64")
        entropy = (table.seed, table.rows, table.columns, table.ids, first)
        state = np.random.RandomState(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        right_rows = rows[rows % STEP == 0]
        yield (
            rows,
            state.poisson(table.ids, len(rows)).astype("int64"),
            state.randint(0, SCALE, (len(rows), table.columns), dtype="int64"),
            right_rows,
            state.randint(0, SCALE, (len(right_rows), table.columns), dtype="int64"),
        )


def write(table: Table, left: Path, right: Path) -> ExpectedTables:
    """Write both tables, and return what must come out of them.

    One process writes: several that write into one file garble it on NFS.
    """
    expected = ExpectedTables([0, 0, 0], [0, 0, 0, 0], {})
    with left.open("wb") as left_file, right.open("wb") as right_file:
        left_file.write(",".join(["row", "id", *table.left_names]).encode() + b"\n")
        right_file.write(",".join(["row", *table.right_names]).encode() + b"\n")
        for rows, ids, numbers, right_rows, right_numbers in parts(table):
            left_file.write(lines([(rows, ROW_DIGITS), (ids, ID_DIGITS)], numbers))
            right_file.write(lines([(right_rows, ROW_DIGITS)], right_numbers))
            partners = numbers[rows % STEP == 0]
            joined = joined_figures(right_rows, [partners, right_numbers], partners[:, 0], right_numbers[:, 0])
            expected.joined = added_up([expected.joined, joined])
            expected.left = added_up([expected.left, read_figures(rows, numbers)])
            _group(expected.groups, ids, numbers)
    return expected


def lines(wholes: List[Tuple[Any, int]], numbers: Any) -> bytes:
    """Comma-separated lines of one length: whole numbers with their digits, then floats as ``0.`` and 14 digits."""
    columns = [_digits(values, digits) for values, digits in wholes]
    text = _digits(numbers.ravel(), DIGITS).reshape(len(numbers), -1, DIGITS)
    point = np.frombuffer(b"0.", dtype="uint8")
    floats = np.concatenate([np.broadcast_to(point, (*text.shape[:2], 2)), text], axis=2)
    columns += [floats[:, number] for number in range(floats.shape[1])]
    comma: Any = np.full((len(numbers), 1), ord(","), dtype="uint8")
    end: Any = np.full((len(numbers), 1), ord("\n"), dtype="uint8")
    pieces = [piece for column in columns for piece in (column, comma)]
    return bytes(np.concatenate([*pieces[:-1], end], axis=1).tobytes())


def _digits(values: Any, digits: int) -> Any:
    """(len(values), digits) of ASCII digits."""
    text: Any = np.empty((len(values), digits), dtype="uint8")
    for place in range(digits - 1, -1, -1):
        values, rest = np.divmod(values, 10)
        text[:, place] = rest + ord("0")
    return text


def wholes(floats: Any) -> Any:
    """Floats that were read, as whole numbers of 10⁻¹⁴; a parser may be wrong by 40 of the last bits."""
    return np.rint(np.asarray(floats, dtype="float64") * SCALE).astype("int64")


def read_figures(rows: Any, numbers: Any) -> List[int]:
    """(rows, sum of row numbers, sum of all floats) of one part."""
    return [len(rows), int(rows.sum()) % WRAP, int(numbers.sum()) % WRAP]


def joined_figures(rows: Any, numbers: List[Any], one: Any, other: Any) -> List[int]:
    """As ``read_figures``, and the sum of the products of the first floats of both sides."""
    count, row_sum, _ = read_figures(rows, numbers[0])
    total = sum(int(part.sum()) for part in numbers) % WRAP
    return [count, row_sum, total, int((one * other).sum()) % WRAP]


def _group(groups: Dict[int, Tuple[int, Any, Any, Any]], ids: Any, numbers: Any) -> None:
    """Take one part into account: sorted by id, each id is one stretch of rows."""
    order = np.argsort(ids, kind="stable")
    found, starts, counts = np.unique(ids[order], return_index=True, return_counts=True)
    ordered = numbers[order]
    smallest, largest = (ufunc.reduceat(ordered, starts, axis=0) for ufunc in (np.minimum, np.maximum))
    sums = np.add.reduceat(ordered / SCALE, starts, axis=0)
    for place, (number, count) in enumerate(zip(found.tolist(), counts.tolist())):
        new = (count, smallest[place], largest[place], sums[place])
        old = groups.get(number, (0, new[1], new[2], 0.0))
        merged = (np.minimum(old[1], new[1]), np.maximum(old[2], new[2]), old[3] + new[3])
        groups[number] = (old[0] + count, *merged)


@functools.lru_cache(maxsize=4)
def written(table: Table, folder: Path) -> Tuple[Path, Path, ExpectedTables]:
    """Both tables in ``folder``, written at the first call only: the workloads of one run share them."""
    name = f"{table.rows}-{table.columns}-{table.ids}-{table.seed}"
    left, right = folder / f"left-{name}.csv", folder / f"right-{name}.csv"
    return left, right, write(table, left, right)


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
        return device.read_csv(str(path), int(self.params["chunk"]), self.context.device)

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

    def question(self) -> List[Any]:
        """What is timed."""
        return [self.left["id"].nunique()]

    def check(self, answer: List[Any]) -> Answer:
        """As many as the generator drew."""
        found, expected = int(self.here(answer)[0]), len(self.expected.groups)
        return judged(found == expected, {"ids": found, "expected_ids": expected})


class FrameGroupby(Partials):
    """Smallest, largest, mean and count of every column by id: four groupbys of one graph, as the original."""

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
