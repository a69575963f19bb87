"""The two CSV files of Summit's dataframe benchmark, and what must come out of them, from the generator alone.

The original writes ``dask.datasets.timeseries``: float columns named by a prefix and a letter, and an id drawn from a
Poisson distribution. Its right table has a tenth of the rows, columns of other names and no id. There the rows' numbers
start again in every partition; here a column holds each row's own number, so that an inner join on it has one answer:
every tenth row of the left table finds a partner.

Every float is a whole number of 10⁻¹⁴, written with all its digits, so that it can be had back exactly from what was
read, and every line of a table has the same length.
"""

import dataclasses
import functools
import string
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from gpubench.node.workloads.base import WRAP, added_up

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
