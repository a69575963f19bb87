"""The 22 queries of TPC-H: dask, pandas and polars answer what DuckDB answered, and a wrong answer is noticed."""

import json
import multiprocessing
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pytest

from contrib.pdsh import by_polars, frames, pdsh, sql
from contrib.pdsh.pdsh import difference, fault, place_of
from gpubench.node.workloads import device
from gpubench.node.workloads.base import UnavailableError, WorkloadContext
from gpubench.resources.own_workloads import own_workloads
from gpubench.resources.profiles import load_suite
from tests.conftest import ROOT
from tests.workloads.contrib.conftest import CONTRIB, Family
from tests.workloads.running import Answers, created, measured_rightly

pytestmark = pytest.mark.system

FILE = "pdsh/pdsh.py"
ANY = "Pdsh"

SCALE = 0.01
# Its own SQL (extension tpch of DuckDB 1.0.0), with query 11's fraction by the scale, on tables of tpchgen-cli 4.0.0.
KNOWN = json.loads((ROOT / "tests/golden/pdsh-0.01.json").read_text())


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> pdsh.Tables:
    return pdsh.made(tmp_path_factory.mktemp("tables"), SCALE, 2)


def known(number: int) -> pd.DataFrame:
    columns = frames.QUERIES[number].columns.split()
    frame = pd.DataFrame(KNOWN[str(number)], columns=columns)
    return frame.assign(**{name: pd.to_datetime(frame[name]) for name in columns if name.endswith("date")})


def by_dask(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    query = frames.QUERIES[number]
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):  # a query chooses it as it is built
        lazy = query.ask(lambda table, *columns: device.read_parquet(tpch.files[table], "cpu", list(columns)), SCALE)
        (answer,) = dask.compute(lazy, scheduler="sync")
    return frames.finished(query, answer)


def by_pandas(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    def read(table: str, *columns: str) -> pd.DataFrame:
        return pd.concat(pd.read_parquet(path, columns=list(columns)) for path in tpch.files[table])

    query = frames.QUERIES[number]
    return frames.finished(query, query.ask(read, SCALE))


def in_polars(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    return by_polars.collected(by_polars.ask(sql.query(number, SCALE), tpch.files), None)


def in_polars_for_gpus(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    query = sql.for_gpu(sql.query(number, SCALE))
    assert not re.search(r"\bLIKE\b|IN \(['\d]", query)
    return by_polars.collected(by_polars.ask(query, tpch.files), None)


@pytest.mark.parametrize("number", range(1, 23))
@pytest.mark.parametrize(
    "answered",
    [by_dask, in_polars, *(pytest.param(way, marks=pytest.mark.long) for way in (by_pandas, in_polars_for_gpus))],
)
def test_a_query_answers_as_duckdb(
    tpch: pdsh.Tables, number: int, answered: Callable[[pdsh.Tables, int], pd.DataFrame]
) -> None:
    assert difference(answered(tpch, number), known(number))[0] == ""


@pytest.mark.parametrize("scale", [0.001, 0.3, 1, 10, 100_000])
def test_no_number_in_a_query_has_an_exponent(scale: float) -> None:
    queries = {number: sql.query(number, scale) for number in sql.SQL}
    assert [number for number, query in queries.items() if re.search(r"\d[eE][-+]?\d|\{", query)] == []
    assert float(re.search(r"SUM\(amount\) \* (\S+)", queries[11])[1]) == 0.0001 / scale


@pytest.mark.parametrize(("query", "backend"), [(3, "dask"), (6, "dask"), (22, "polars")])
def test_a_query_on_the_cluster_answers_rightly(
    cluster: WorkloadContext, family: Family, tpch: pdsh.Tables, query: int, backend: str
) -> None:
    params = {"query": query, "scale": SCALE, "files": 2, "directory": str(tpch.folder.parent)}
    result = measured_rightly(cluster, family("Pdsh"), params, backend=backend, moves=False)
    assert result.details["rows"] == len(KNOWN[str(query)])
    assert result.details["oracle"].split()[0] == ("pandas" if backend == "polars" else "polars")
    assert result.details["tables"].startswith("tpchgen-cli ")


FALSIFIED: list[tuple[str, Callable[[pd.DataFrame], pd.DataFrame]]] = [
    ("a row is missing", lambda frame: frame[1:]),
    ("two rows changed places", lambda frame: frame.iloc[[1, 0, *range(2, len(frame))]].reset_index(drop=True)),
    ("a sum is off", lambda frame: frame.assign(revenue=frame["revenue"] * (1 + 1e-8))),
    ("a sum is no number", lambda frame: frame.assign(revenue=float("nan"))),
    ("a key is off", lambda frame: frame.assign(l_orderkey=frame["l_orderkey"] + 1)),
    ("a day is off", lambda frame: frame.assign(o_orderdate=frame["o_orderdate"] + pd.Timedelta(days=1))),
    ("a column is missing", lambda frame: frame.drop(columns="revenue")),
]


@pytest.mark.parametrize("falsify", [change for _, change in FALSIFIED], ids=[name for name, _ in FALSIFIED])
def test_a_falsified_answer_is_called_wrong(
    answers: Answers, family: Family, tpch: pdsh.Tables, falsify: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    params = {"query": 3, "scale": 0.01, "path": str(tpch.folder)}
    answers.called_wrong(family("Pdsh"), params, lambda frames: [falsify(frames[0])])


def test_several_queries_are_one_cell_of_their_geometric_mean(
    cluster: WorkloadContext, family: Family, tpch: pdsh.Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"queries": [6, 3, 12], "scale": SCALE, "path": str(tpch.folder)}
    result = measured_rightly(cluster, family("Pdsh"), params, backend="polars", moves=False)
    assert result.details["rows"] == sum(len(KNOWN[number]) for number in ("6", "3", "12"))
    measurement = created(cluster, family("Pdsh"), params, backend="polars")
    measurement.setup()
    alone = [created(cluster, family("Pdsh"), {**params, "queries": [n]}, backend="polars") for n in (6, 3)]
    for one in alone:
        one.setup()
    ticks = iter([0.0, 1.0, 10.0, 14.0, 20.0, 36.0])
    monkeypatch.setattr(pdsh.time, "perf_counter", lambda: next(ticks))
    seconds, answer = measurement.once()
    assert seconds == pytest.approx(4.0)  # of 1, 4 and 16
    assert measurement.check(answer).status == "ok"
    wrong = measurement.check([answer[0], answer[1][1:], answer[2]])
    assert (wrong.status, wrong.details["differs"]) == ("wrong", "query 3: rows")
    both = [one.nominal_bytes for one in alone]
    assert min(both) < measurement.nominal_bytes < max(both)


def test_tables_are_made_once_and_found_again(tpch: pdsh.Tables) -> None:
    def times(found: pdsh.Tables) -> list[int]:
        return [Path(path).stat().st_mtime_ns for files in found.files.values() for path in files]

    before = times(tpch)
    again = pdsh.made(tpch.folder.parent, SCALE, 2)
    assert (again.folder, times(again)) == (tpch.folder, before)
    other = pdsh.made(tpch.folder.parent, 0.001, 2)
    assert other.folder != tpch.folder
    assert {table: len(files) for table, files in other.files.items()}["lineitem"] == 2


def _made(place: Path) -> str:
    return str(pdsh.made(place, 0.001, 1).folder)


def test_processes_that_make_the_same_tables_at_once_share_them(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        folders = pool.map(_made, [tmp_path] * 2, chunksize=1)
    assert [str(path) for path in tmp_path.iterdir()] == folders[:1] == sorted(set(folders))


def test_tables_are_kept_beside_the_campaigns_runs_unless_a_directory_is_named() -> None:
    assert place_of("", "/c/runs/abc-1") == Path("/c/data")
    assert place_of("/d", "/c/runs/abc-1") == Path("/d")
    assert place_of("", "/elsewhere/abc") == Path("/elsewhere/abc")
    assert place_of("", "").is_dir()


@pytest.mark.parametrize(
    ("backend", "path", "words"),
    [
        ("dask", "/nowhere", "no Parquet file in /nowhere/lineitem"),
        ("cudf-polars", "", "back-end cudf-polars needs cudf_polars"),
    ],
)
def test_what_is_missing_skips_the_workload_with_the_reason(
    cluster: WorkloadContext, family: Family, backend: str, path: str, words: str
) -> None:
    with pytest.raises(UnavailableError, match=words):
        created(cluster, family("Pdsh"), {"scale": SCALE, "path": path}, backend=backend).setup()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"query": 23}, "from 1 to 22"),
        ({"queries": [1, 23]}, "from 1 to 22"),
        ({"queries": [1, 1]}, "names a query twice"),
        ({"scale": 0.0001}, "scale is at least"),
        ({"files": 0}, "at least 1"),
    ],
)
def test_parameters_out_of_bounds_are_refused(
    cluster: WorkloadContext, family: Family, params: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        created(cluster, family("Pdsh"), params)


@pytest.mark.parametrize(("name", "queries"), [("pdsh", range(1, 23)), ("pdsh-quick", (1, 3, 5, 6, 10, 12))])
def test_a_suite_measures_its_queries(name: str, queries: Iterable[int]) -> None:
    suite, source = load_suite(str(CONTRIB / f"pdsh/{name}.toml"))
    specs = suite.resolve(source, reps=None, timeout_s=60.0, own=own_workloads(suite, source.name))
    assert [spec.params["query"] for spec in specs] == list(queries)
    assert not any(fault(spec.params) for spec in specs)
