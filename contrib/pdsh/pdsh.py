"""The 22 queries derived from TPC-H, on Parquet files: by dask.dataframe, cudf-polars, or polars in one process.

The eight tables are made once by ``tpchgen-cli`` and found again by a hash of its options. Node half: runs in the
client. ``tpchgen-cli`` is a program in a Python wheel; its numbers follow from the scale alone.
"""

import atexit
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

import dask
import numpy as np
import pandas as pd

from gpubench.node.workloads import dask_compat, device
from gpubench.node.workloads.base import Answer, Measurement, UnavailableError, WorkloadContext

from . import frames, sql

FILES_BY = {"lineitem": 1, "orders": 4, "partsupp": 8, "customer": 32, "part": 32}
"""A table has one file for so many of lineitem's, as its rows are fewer; supplier, nation and region have one each."""
TABLES = ("lineitem", "orders", "partsupp", "customer", "part", "supplier", "nation", "region")
THREADS = 4


def generator() -> str:
    """The generator's version.

    Raises:
        UnavailableError: the image has no generator.
    """
    try:
        return importlib.metadata.version("tpchgen-cli")
    except importlib.metadata.PackageNotFoundError:
        raise UnavailableError(
            "pdsh needs tpchgen-cli, and this image has none: build the image again, or give tables as `path`"
        ) from None


class Tables:
    """Files below a folder, ``<table>/*.parquet``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: Dict[str, List[str]] = {
            table: [str(path) for path in sorted((folder / table).glob("*.parquet"))] for table in TABLES
        }

    @property
    def missing(self) -> List[str]:
        """Tables without a file."""
        return [table for table, files in self.files.items() if not files]

    def bytes_of(self, tables: List[str]) -> int:
        """Bytes on disk."""
        return sum(Path(path).stat().st_size for table in tables for path in self.files[table])


def listed(folder: str) -> str:
    """Hash of the names and sizes of all tables' files, as this process sees them."""
    seen = [(path, Path(path).stat().st_size) for files in Tables(Path(folder)).files.values() for path in files]
    return hashlib.sha256(json.dumps(sorted(seen)).encode("utf-8")).hexdigest()


def made(place: Path, scale: float, files: int) -> Tables:
    """The tables of a scale factor in a folder below ``place``, unless they are there: lineitem in so many files.

    Another process may make the same ones meanwhile: the first that is done is taken.

    Raises:
        UnavailableError: as for ``generator``.
        RuntimeError: it failed; with its last line.
    """
    recipe = json.dumps(["tpchgen-cli", generator(), scale, files, FILES_BY, "float64, timestamp[ns]"])
    folder = place / "pdsh-{}".format(hashlib.sha256(recipe.encode("utf-8")).hexdigest()[:16])
    if not folder.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".pdsh-", dir=str(place)))
        try:
            _generate(beside, scale, files)
            beside.chmod(0o755)
            beside.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(str(beside), ignore_errors=True)
    return Tables(folder)


def _generate(folder: Path, scale: float, files: int) -> None:
    from . import parquet_types

    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or "tpchgen-cli"
    raw = folder / "raw"
    by_parts: Dict[int, List[str]] = {}
    for table in TABLES:
        by_parts.setdefault(-(-files // FILES_BY.get(table, files)), []).append(table)
    for parts, tables in by_parts.items():
        what = ("-s", f"{scale:g}", "--parts", str(parts), "-T", ",".join(tables), "-o", str(raw))
        done = subprocess.run(
            [program, "parquet", "-q", *what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            said = done.stdout.decode("utf-8", "replace").strip().splitlines()
            raise RuntimeError(f"tpchgen-cli: exit code {done.returncode}: {(said or ['no word'])[-1]}")
    pairs = [(str(path), str(folder / path.relative_to(raw))) for path in sorted(raw.glob("*/*.parquet"))]
    for table in TABLES:
        (folder / table).mkdir()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda pair: parquet_types.retyped(*pair), pairs))
    shutil.rmtree(str(raw))


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
    return run.parent.parent / "data" if shared and run.parent.name == "runs" else run if shared else _own_folder()


def fault(params: Mapping[str, Any]) -> str:
    """What is wrong with the parameters; empty where nothing is."""
    if not all(1 <= int(number) <= 22 for number in (params["query"], *params["queries"])):
        return "query is a number from 1 to 22"
    if len(set(params["queries"])) < len(params["queries"]):
        return "queries names a query twice"
    if not params["path"] and int(params["files"]) < 1:
        return "files is at least 1"
    return "" if 0.001 <= params["scale"] <= 100_000 else "scale is at least 0.001 and at most 100000"


class Pdsh(Measurement):
    """One query, or several whose geometric mean counts. Files are read inside the clock, often from the page cache."""

    plan = {
        "params": {
            "query": {"kind": "count", "default": 1, "text": "which of the 22 queries"},
            "queries": {
                "kind": "counts",
                "default": [],
                "text": "several queries instead, as one cell: a sample is the geometric mean of their seconds",
            },
            "scale": {"kind": "number", "default": 0.1, "text": "scale factor: about so many GB of text"},
            "files": {
                "kind": "count",
                "default": 4,
                "text": "files of table lineitem, the others have fewer: partitions",
            },
            "directory": {
                "kind": "path",
                "default": "",
                "text": "where the generated tables are kept, seen by all workers; the campaign's `data` if empty",
            },
            "path": {
                "kind": "path",
                "default": "",
                "text": "your own tables instead, as <table>/*.parquet with float64 and timestamps; of this scale",
            },
        },
        "backends": {
            "dask": ["pyarrow"],
            "cudf-polars": ["pyarrow", "polars", "cudf_polars"],
            "polars": ["pyarrow", "polars"],
        },
        # What is read, its shuffled copy and the joined rows; nothing is known of files that are given by path.
        "held": "0 if path else 1.5 * scale * 10**9 / workers",
        "grows": {"scale": 1.0},
        "source": "TPC-H; cudf_polars.streaming.benchmarks.pdsh",
        "timed": "building the query over Parquet files, reading, computing it, bringing the answer to the client",
        "counted": "bytes on disk of the tables that the query names; of several queries the mean",
        "oracle": "rows, their order and all columns exactly, floats to 1e-9, as polars answers the same query in SQL "
        "on the same files; as pandas, where the image has no polars or polars is measured",
    }

    def __init__(self, context: WorkloadContext, params: Any) -> None:
        super().__init__(context, params)
        if wrong := fault(params):
            raise ValueError(wrong)
        self._numbers = [int(number) for number in params["queries"] or [params["query"]]]
        self._scale = float(params["scale"])
        self._about: Dict[str, Any] = {}
        self._engine: Any = None
        self._tables: Any = None
        self._expected: List[pd.DataFrame] = []

    @property
    def nominal_bytes(self) -> int:
        """On disk, of the tables that the query names; of several queries the mean."""
        words = [set(re.findall(r"\w+", sql.SQL[number])) for number in self._numbers]
        read = [self._tables.bytes_of([table for table in TABLES if table in named]) for named in words]
        return int(sum(read) // len(read))

    @property
    def figures(self) -> Dict[str, Any]:
        """Which tables, and who else answered."""
        return self._about

    def setup(self) -> None:
        """Make the tables or find them; see that all workers see them; let the oracle answer.

        Raises:
            UnavailableError: this image lacks the generator or the back-end, or a worker doesn't see the files.
        """
        if self.params["path"]:
            self._tables = Tables(Path(self.params["path"]).expanduser())
            self._about["tables"] = str(self._tables.folder)
        else:
            place = place_of(self.params["directory"], self.context.shared)
            self._tables = made(place, self._scale, int(self.params["files"]))
            self._about["tables"] = f"tpchgen-cli {generator()}, {self._tables.folder.name}"
        if self._tables.missing:
            where = ", ".join(str(self._tables.folder / table) for table in self._tables.missing)
            raise UnavailableError(f"no Parquet file in {where}")
        self._see_that_all_see()
        if self.backend == "cudf-polars":
            self._start_engine()
        self.uses_transfer_log = self.backend == "dask"
        if self.backend == "polars" or importlib.util.find_spec("polars") is None:
            self._about["oracle"] = f"pandas {pd.__version__}"
            queries = [frames.QUERIES[number] for number in self._numbers]
            self._expected = [frames.finished(one, one.ask(self._read_here, self._scale)) for one in queries]
        else:
            self._about["oracle"] = "polars {}".format(importlib.metadata.version("polars"))
            self._expected = [self._by_polars(number, None) for number in self._numbers]

    def _see_that_all_see(self) -> None:
        folder = str(self._tables.folder)
        here = listed(folder)
        there = {} if self.backend == "polars" else self.context.client.run(listed, folder)
        blind = sorted(worker for worker, seen in there.items() if seen != here)
        if blind:
            raise UnavailableError(f"{', '.join(blind)} can't read {folder}: name a shared one as `directory`")

    def _start_engine(self) -> None:
        from . import by_polars

        try:
            # It leaves a memory resource of its own in our workers (cudf_polars/engine/dask.py:408@v26.10.00a).
            self.context.client.run(device.keep_memory_resource)
            self._engine, self._about["cudf_polars"] = by_polars.cluster_engine(self.context.client)
        except ImportError as error:
            raise UnavailableError(f"pdsh needs cudf-polars' DaskEngine (26.10 or newer): {error}") from None

    def _read_here(self, table: str, *columns: str) -> pd.DataFrame:
        return pd.concat(pd.read_parquet(path, columns=list(columns)) for path in self._tables.files[table])

    def _read(self, table: str, *columns: str) -> Any:
        return device.read_parquet(self._tables.files[table], self.context.device, list(columns))

    def _by_polars(self, number: int, engine: Any) -> pd.DataFrame:
        from . import by_polars

        query = sql.query(number, self._scale)
        if engine is not None and engine is self._engine:
            query = sql.for_gpu(query)
        return by_polars.collected(by_polars.ask(query, self._tables.files), engine)

    def prepare(self) -> None:
        """The files lie where they lie."""

    def once(self) -> Tuple[float, List[pd.DataFrame]]:
        """One query after the other: ask, read, compute, bring the answer here; the geometric mean of their seconds."""
        seconds, answers = zip(*map(self._ask, self._numbers))
        return statistics.geometric_mean(seconds), list(answers)

    def _ask(self, number: int) -> Tuple[float, pd.DataFrame]:
        if self.backend != "dask":
            from .by_polars import STREAMING

            start = time.perf_counter()
            answer = self._by_polars(number, self._engine or STREAMING)
            return time.perf_counter() - start, answer
        client, query = self.context.client, frames.QUERIES[number]
        with dask.config.set(dask_compat.BY_TASKS):
            start = time.perf_counter()
            lazy = query.ask(self._read, self._scale)
            if isinstance(lazy, dict):
                computed: Any = dict(zip(lazy, client.gather(client.compute(list(lazy.values())))))
            else:
                computed = client.gather(client.compute(lazy))
            answer = frames.finished(query, computed)
            return time.perf_counter() - start, answer

    def check(self, answer: List[pd.DataFrame]) -> Answer:
        """Against the oracle: columns, rows, order and everything but floats exactly, floats to ``CLOSE``."""
        found = [difference(one, expected) for one, expected in zip(answer, self._expected)]
        details: Dict[str, Any] = {
            "rows": sum(map(len, answer)),
            "expected_rows": sum(map(len, self._expected)),
            "off_by": max(off_by for _, off_by in found),
        }
        wrong = [f"query {number}: {what}" for number, (what, _) in zip(self._numbers, found) if what]
        if wrong:
            details["differs"] = "; ".join(wrong)
        return Answer("wrong" if wrong else "ok", details)

    def teardown(self) -> None:
        """End cudf-polars' engine; the files stay for the next query."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()
            self.context.client.run(device.restore_memory_resource)


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
