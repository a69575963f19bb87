"""The 22 queries derived from TPC-H, on Parquet files: by dask.dataframe, cudf-polars, or polars in one process."""

import atexit
import functools
import importlib.metadata
import importlib.util
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import dask
import numpy as np
import pandas as pd

from gpubench.spec.records import DATA_FOLDER
from gpubench.workloads import dask_compat, device, pdsh_data, pdsh_frames, pdsh_sql
from gpubench.workloads.base import Answer, Measurement, UnavailableError, WorkloadContext

CLOSE = 1e-9
"""Sums of n floats of one sign in two orders differ by n · 1.1e-16 at worst: 7e-10 for the 6e6 rows of scale 1."""


@functools.cache
def _own_folder() -> Path:
    """Where no folder is known that the workers see: one that goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="gpubench-pdsh-"))
    atexit.register(shutil.rmtree, str(folder), ignore_errors=True)
    return folder


def place_of(directory: str, shared: str) -> Path:
    """Where tables are kept: where the user says; else beside the campaign's runs, of which ``shared`` is one."""
    if directory:
        return Path(directory).expanduser()
    run = Path(shared)
    return run.parent.parent / DATA_FOLDER if shared and run.parent.name == "runs" else run if shared else _own_folder()


class Pdsh(Measurement):
    """One query. Files are read inside the clock, from the page cache unless memory is short."""

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        self._number = int(params["query"])
        self._scale = float(params["scale"])
        self._query = pdsh_frames.QUERIES[self._number]
        self._about: Dict[str, Any] = {}
        self._engine: Any = None
        self._tables: Any = None
        self._expected = pd.DataFrame()

    @property
    def nominal_bytes(self) -> int:
        """On disk, of the tables that the query names."""
        words = set(re.findall(r"\w+", pdsh_sql.SQL[self._number]))
        return int(self._tables.bytes_of([table for table in pdsh_data.TABLES if table in words]))

    @property
    def least_moved_bytes(self) -> int:
        """Nobody knows which rows meet where."""
        return 0

    @property
    def figures(self) -> Dict[str, Any]:
        """Which tables, and who else answered."""
        return self._about

    def setup(self) -> None:
        """Make the tables or find them; see that all workers see them; let the oracle answer.

        Raises:
            UnavailableError: this image lacks the generator or the back-end, or a worker doesn't see the files.
        """
        if self.backend != "dask" and importlib.util.find_spec("polars") is None:
            raise UnavailableError(f"pdsh with back-end {self.backend} needs polars, and this image has none")
        if self.params["path"]:
            self._tables = pdsh_data.Tables(Path(self.params["path"]).expanduser())
            self._about["tables"] = str(self._tables.folder)
        else:
            place = place_of(self.params["directory"], self.context.shared)
            self._tables = pdsh_data.made(place, self._scale, int(self.params["files"]))
            self._about["tables"] = f"tpchgen-cli {pdsh_data.generator()}, {self._tables.folder.name}"
        if self._tables.missing:
            where = ", ".join(str(self._tables.folder / table) for table in self._tables.missing)
            raise UnavailableError(f"no Parquet file in {where}")
        self._see_that_all_see()
        if self.backend == "cudf-polars":
            self._start_engine()
        self.uses_transfer_log = self.backend == "dask"
        if self.backend == "polars" or importlib.util.find_spec("polars") is None:
            self._about["oracle"] = f"pandas {pd.__version__}"
            self._expected = pdsh_frames.finished(self._query, self._query.ask(self._read_here, self._scale))
        else:
            self._about["oracle"] = "polars {}".format(importlib.metadata.version("polars"))
            self._expected = self._by_polars(None)

    def _see_that_all_see(self) -> None:
        folder = str(self._tables.folder)
        here = pdsh_data.listed(folder)
        there = {} if self.backend == "polars" else self.context.client.run(pdsh_data.listed, folder)
        blind = sorted(worker for worker, seen in there.items() if seen != here)
        if blind:
            raise UnavailableError(f"{', '.join(blind)} can't read {folder}: name a shared one as `directory`")

    def _start_engine(self) -> None:
        from gpubench.workloads import pdsh_polars

        try:
            self._engine, self._about["cudf_polars"] = pdsh_polars.cluster_engine(self.context.client)
        except ImportError as error:
            raise UnavailableError(f"pdsh needs cudf-polars' DaskEngine (26.10 or newer): {error}") from None

    def _read_here(self, table: str, *columns: str) -> pd.DataFrame:
        return pd.concat(pd.read_parquet(path, columns=list(columns)) for path in self._tables.files[table])

    def _read(self, table: str, *columns: str) -> Any:
        return device.read_parquet(self._tables.files[table], self.context.device, list(columns))

    def _by_polars(self, engine: Any) -> pd.DataFrame:
        from gpubench.workloads import pdsh_polars

        sql = pdsh_sql.SQL[self._number].replace("{fraction}", repr(0.0001 / self._scale))
        return pdsh_polars.collected(pdsh_polars.ask(sql, self._tables.files), engine)

    def prepare(self) -> None:
        """The files lie where they lie."""

    def once(self) -> Tuple[float, pd.DataFrame]:
        """Ask, read, compute, bring the answer here."""
        if self.backend != "dask":
            start = time.perf_counter()
            answer = self._by_polars(self._engine)
            return time.perf_counter() - start, answer
        client = self.context.client
        with dask.config.set(dask_compat.BY_TASKS):
            start = time.perf_counter()
            lazy = self._query.ask(self._read, self._scale)
            if isinstance(lazy, dict):
                computed: Any = dict(zip(lazy, client.gather(client.compute(list(lazy.values())))))
            else:
                computed = client.gather(client.compute(lazy))
            answer = pdsh_frames.finished(self._query, computed)
            return time.perf_counter() - start, answer

    def check(self, answer: pd.DataFrame) -> Answer:
        """Against the oracle: columns, rows, order and everything but floats exactly, floats to ``CLOSE``."""
        wrong, off_by = difference(answer, self._expected)
        details: Dict[str, Any] = {"rows": len(answer), "expected_rows": len(self._expected), "off_by": off_by}
        if wrong:
            details["differs"] = wrong
        return Answer("wrong" if wrong else "ok", details)

    def teardown(self) -> None:
        """End cudf-polars' engine; the files stay for the next query."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()


def difference(answer: pd.DataFrame, expected: pd.DataFrame) -> Tuple[str, float]:
    """(what differs, empty where nothing does; largest relative difference of a float)."""
    if list(answer.columns) != list(expected.columns):
        return f"columns {list(answer.columns)}, expected {list(expected.columns)}", 0.0
    if len(answer) != len(expected):
        return "rows", 0.0
    off_by, wrong = 0.0, ""
    for name in expected.columns:
        one, other = answer[name], expected[name]
        if "f" in (one.dtype.kind, other.dtype.kind):
            x, y = one.to_numpy("float64"), other.to_numpy("float64")
            far = float((np.abs(x - y) / np.maximum(np.abs(y), 1e-300)).max()) if len(x) else 0.0
            off_by = max(off_by, far)
            wrong = wrong or ("" if far <= CLOSE else str(name))
        elif _plain(one) != _plain(other):
            wrong = wrong or str(name)
    return wrong, off_by


def _plain(column: Any) -> List[Any]:
    """Days, numbers and words as Python's own, whoever made them."""
    if column.dtype.kind == "M":
        return [str(value)[:10] for value in column]
    return [int(value) if isinstance(value, (int, np.integer)) else str(value) for value in column]
