"""The 22 queries of TPC-H: dask, pandas and polars answer what DuckDB answered, and a wrong answer is noticed."""

from __future__ import annotations

import json
import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pytest

from gpubench.errors import UsageError
from gpubench.model.suite import Suite
from gpubench.workloads import device, families, pdsh, pdsh_frames, pdsh_polars, pdsh_sql
from gpubench.workloads.base import UnavailableError, WorkloadContext
from gpubench.workloads.pdsh import difference, place_of
from tests.workloads.running import Answers, complete, measured_rightly

pytestmark = pytest.mark.integration

SCALE = 0.01
# Its own SQL (extension tpch of DuckDB 1.0.0), with query 11's fraction by the scale, on tables of tpchgen-cli 4.0.0.
KNOWN = json.loads((Path(__file__).parents[1] / "golden" / "pdsh-0.01.json").read_text())


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> pdsh.Tables:
    return pdsh.made(tmp_path_factory.mktemp("tables"), SCALE, 2)


def known(number: int) -> pd.DataFrame:
    columns = pdsh_frames.QUERIES[number].columns.split()
    frame = pd.DataFrame(KNOWN[str(number)], columns=columns)
    return frame.assign(**{name: pd.to_datetime(frame[name]) for name in columns if name.endswith("date")})


def by_dask(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    query = pdsh_frames.QUERIES[number]
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):  # a query chooses it as it is built
        lazy = query.ask(lambda table, *columns: device.read_parquet(tpch.files[table], "cpu", list(columns)), SCALE)
        (answer,) = dask.compute(lazy, scheduler="sync")
    return pdsh_frames.finished(query, answer)


def by_pandas(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    def read(table: str, *columns: str) -> pd.DataFrame:
        return pd.concat(pd.read_parquet(path, columns=list(columns)) for path in tpch.files[table])

    query = pdsh_frames.QUERIES[number]
    return pdsh_frames.finished(query, query.ask(read, SCALE))


def by_polars(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    return pdsh_polars.collected(pdsh_polars.ask(pdsh_sql.query(number, SCALE), tpch.files), None)


def by_polars_for_gpus(tpch: pdsh.Tables, number: int) -> pd.DataFrame:
    sql = pdsh_sql.for_gpu(pdsh_sql.query(number, SCALE))
    assert not re.search(r"\bLIKE\b|IN \(['\d]", sql)
    return pdsh_polars.collected(pdsh_polars.ask(sql, tpch.files), None)


@pytest.mark.parametrize("number", range(1, 23))
@pytest.mark.parametrize("answered", [by_dask, by_pandas, by_polars, by_polars_for_gpus])
def test_a_query_answers_as_duckdb(
    tpch: pdsh.Tables, number: int, answered: Callable[[pdsh.Tables, int], pd.DataFrame]
) -> None:
    assert difference(answered(tpch, number), known(number))[0] == ""


@pytest.mark.parametrize("scale", [0.001, 0.3, 1, 10, 100_000])
def test_no_number_in_a_query_has_an_exponent(scale: float) -> None:
    queries = {number: pdsh_sql.query(number, scale) for number in pdsh_sql.SQL}
    assert [number for number, sql in queries.items() if re.search(r"\d[eE][-+]?\d|\{", sql)] == []
    assert float(re.search(r"SUM\(amount\) \* (\S+)", queries[11])[1]) == 0.0001 / scale


@pytest.mark.parametrize(("query", "backend"), [(3, "dask"), (6, "dask"), (22, "polars")])
def test_a_query_on_the_cluster_answers_rightly(
    cluster: WorkloadContext, tpch: pdsh.Tables, query: int, backend: str
) -> None:
    params = {"query": query, "scale": SCALE, "files": 2, "directory": str(tpch.folder.parent)}
    result = measured_rightly(cluster, "pdsh", params, backend=backend, moves=False)
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
    answers: Answers, tpch: pdsh.Tables, falsify: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    params = {"query": 3, "scale": 0.01, "path": str(tpch.folder)}
    answers.called_wrong("pdsh", params, lambda frames: [falsify(frames[0])])


def test_several_queries_are_one_cell_of_their_geometric_mean(
    cluster: WorkloadContext, tpch: pdsh.Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"queries": [6, 3, 12], "scale": SCALE, "path": str(tpch.folder)}
    result = measured_rightly(cluster, "pdsh", params, backend="polars", moves=False)
    assert result.details["rows"] == sum(len(KNOWN[number]) for number in ("6", "3", "12"))
    measurement = families.create("pdsh", cluster, "polars", complete("pdsh", params))
    measurement.setup()
    alone = [families.create("pdsh", cluster, "polars", complete("pdsh", {**params, "queries": [n]})) for n in (6, 3)]
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


def test_the_plan_refuses_a_query_that_is_named_twice_or_is_none() -> None:
    for queries, words in (([1, 1], "names a query twice"), ([1, 23], "from 1 to 22")):
        suite = Suite.model_validate({"name": "x", "workload": [{"name": "pdsh", "params": {"queries": queries}}]})
        with pytest.raises(UsageError, match=words):
            suite.resolve("x.toml", reps=None, timeout_s=60.0)


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
    ("backend", "params", "words"),
    [("dask", {"path": "/nowhere"}, "no Parquet file in /nowhere/lineitem"), ("cudf-polars", {}, "DaskEngine")],
)
def test_what_is_missing_skips_the_workload_with_the_reason(
    cluster: WorkloadContext, tpch: pdsh.Tables, backend: str, params: dict[str, Any], words: str
) -> None:
    given = {"scale": SCALE, "files": 2, "directory": str(tpch.folder.parent)} | params
    measurement = families.create("pdsh", cluster, backend, complete("pdsh", given))
    with pytest.raises(UnavailableError, match=words):
        measurement.setup()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"query": 23}, "from 1 to 22"),
        ({"scale": 0.0001}, "scale is at least"),
        ({"scale": "1"}, "not a number"),
        ({"files": 0}, "at least 1"),
    ],
)
def test_parameters_out_of_bounds_are_refused_when_the_suite_is_read(params: dict[str, Any], words: str) -> None:
    suite = Suite.model_validate({"name": "x", "workload": [{"name": "pdsh", "params": params}]})
    with pytest.raises(UsageError, match=words):
        suite.resolve("x.toml", reps=None, timeout_s=60.0)
