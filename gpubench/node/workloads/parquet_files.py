"""Parquet files in the workers' sight: the one file that needs pyarrow. All functions run in the workers."""

import shutil
from pathlib import Path
from typing import Any, List, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

Figures = List[int]
"""Rows, and the sum of every numeric column in the order of the file, rounded to a whole number."""


def write(number: int, rows: int, folder: str) -> None:
    """File ``number``: ``rows`` numbers that continue those of the file before, and their remainders as float64."""
    ids: Any = np.arange(number * rows, (number + 1) * rows, dtype="int64")
    table = pa.table({"id": ids, "payload": (ids % 1009).astype("float64")})
    Path(folder).mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(table, Path(folder) / f"part-{number:05}.parquet")


def listed(path: str) -> List[Tuple[str, int]]:
    """Name and bytes of every Parquet file in a folder; nothing where there is no such folder."""
    return sorted((file.name, file.stat().st_size) for file in Path(path).glob("*.parquet"))


def figures(path: str) -> Figures:
    """Of one file, read without Dask."""
    table = pa.parquet.read_table(path)
    numeric = [column for column in table.columns if is_numeric(column.type)]
    return [table.num_rows, *(round(pa.compute.sum(column).as_py() or 0) for column in numeric)]


def is_numeric(kind: Any) -> bool:
    """Integers and floats; neither decimals nor booleans."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
