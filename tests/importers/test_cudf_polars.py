"""``pdsh_results.jsonl``, by the fields that cudf-polars 26.10.2 writes."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

from gpubench.importers.directory import Given, ImportedResults, import_files
from gpubench.importers.formats import FORMATS

RESULTS = Path(__file__).parent / "fixtures" / "cudf_polars" / "pdsh_results.jsonl"


def imported(tmp_path: Path, *sources: Path) -> ImportedResults:
    return import_files("cudf-polars", FORMATS["cudf-polars"], [*sources], tmp_path / "out", Given(variant="1.19.0"))


def test_a_query_is_a_cell_and_an_iteration_a_repetition(tmp_path: Path) -> None:
    found = imported(tmp_path, RESULTS)
    table = found.table
    assert [(json.loads(row["params"])["query"], row["rep"]) for row in table.iter_rows(named=True)] == [
        (1, 0),
        (3, 0),
        (1, 1),
        (3, 2),
    ]
    row = table.row(2, named=True)
    assert (row["workload"], row["backend"], row["wall_s"], row["answer"]) == ("pdsh", "dask", 1.0417, "ok")
    assert (row["date"], row["workers"], row["nodes"], row["device"]) == (dt.date(2026, 11, 7), 4, None, "gpu")
    assert json.loads(row["params"])["scale_factor"] == 10
    (document,) = found.note["documents"].values()
    assert document["versions"]["rapidsmpf"]["version"] == "26.10.0"
    assert "records" not in document


def test_with_a_hot_cache_the_first_iteration_warms_it(tmp_path: Path) -> None:
    warm = {row["rep"]: row["warmup"] for row in imported(tmp_path, RESULTS).table.iter_rows(named=True)}
    assert warm == {0: True, 1: False, 2: False}
    run = json.loads(RESULTS.read_text()) | {"io_mode": "lukewarm"}
    (tmp_path / "lukewarm.jsonl").write_text(json.dumps(run) + "\n")
    assert not imported(tmp_path, tmp_path / "lukewarm.jsonl").table["warmup"].any()


def test_a_text_that_no_file_could_hold_is_refused_with_its_line(tmp_path: Path) -> None:
    run = json.loads(RESULTS.read_text())
    lines = [run | {"timestamp": "2026-11-08T00:00:00+00:00"}, run | {"frontend": "\ud800"}, run]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    refused = imported(tmp_path, tmp_path / "runs.jsonl").note["refused"]
    assert ("runs.jsonl", 2, "cut off, or not JSON") in [(one["file"], one["line"], one["reason"]) for one in refused]


def test_failed_queries_and_wrong_answers_are_refused_with_their_reason(tmp_path: Path) -> None:
    assert [one["reason"] for one in imported(tmp_path, RESULTS).note["refused"]] == [
        "query 1, iteration 2: its answer was wrong: columns differ",
        "query 3, iteration 1 failed: MemoryError: std::bad_alloc: out_of_memory",
    ]


def test_runs_are_appended_and_a_copy_of_one_counts_once_and_a_torn_line_is_named(tmp_path: Path) -> None:
    text = RESULTS.read_text()
    other = text.replace("0001", "0002")
    (tmp_path / "a.jsonl").write_text(text + other + other[:100])
    found = imported(tmp_path, RESULTS, tmp_path / "a.jsonl")
    assert found.table["run"].n_unique() == 2
    assert found.table.height == 8
    lost = [one["reason"] for one in found.note["refused"]]
    assert "cut off, or not JSON" in lost
    assert sum(reason.startswith("says the same as") for reason in lost) == 4


def test_records_of_older_releases_are_told_apart_by_their_place(tmp_path: Path) -> None:
    run = {"frontend": "dask", "records": {"6": [{"query": 6, "duration": 1.5}, {"query": 6, "duration": 1.25}]}}
    (tmp_path / "old.jsonl").write_text(json.dumps(run))
    table = imported(tmp_path, tmp_path / "old.jsonl").table
    assert (table["rep"].to_list(), table["wall_s"].to_list()) == ([0, 1], [1.5, 1.25])
    assert (table["workers"].to_list(), table["device"].to_list()) == ([None] * 2, [None] * 2)


def test_a_file_of_the_real_benchmark_is_kept_whole(tmp_path: Path) -> None:
    found = imported(tmp_path, RESULTS.with_name("pdsh_results_cpu.jsonl"))
    assert found.note["refused"] == []
    table = found.table
    kept = [(json.loads(params)["query"], rep) for params, rep in table.select("params", "rep").iter_rows()]
    assert sorted(kept) == [(query, rep) for query in (1, 3, 6) for rep in range(3)]
    assert set(table.select("workload", "backend", "device", "workers").iter_rows()) == {
        ("pdsh", "polars-cpu", "cpu", 1)
    }
    (document,) = found.note["documents"].values()
    assert document["versions"]["polars"] == "1.44.2"
