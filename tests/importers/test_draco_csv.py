"""The table that dask-cuda-benchmarks publishes: rows that are measurements, and those that aren't."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gpubench.errors import DataError
from gpubench.results.importers.directory import Given, ImportedResults, import_files, open_imported
from gpubench.results.importers.draco_csv import NO_MEASUREMENT
from gpubench.results.importers.formats import FORMATS

HEADING = (
    "date,num_workers,backend,ucx_version,wallclock,data_processed,rows_per_chunk,frac_match,nreps,"
    "throughput_mean,throughput_std"
)


def line(
    date: str = "2022-07-11", workers: int = 8, backend: str = "dask", version: str = "1.12.1", s: float = 0.5
) -> str:
    """A row that agrees with itself."""
    rate, place = 1.024e10 / workers / s / 1e9, f"{date}T00:00:00,{workers}.0,{backend},ucx-{version}"
    return f"{place},{s!r},10240000000.0,4e7,0.6000000000000001,30.0,{rate!r},0.05"


def imported(directory: Path, *lines: str, heading: str = HEADING) -> ImportedResults:
    source = directory / "multi-node-merge.csv"
    source.write_text("\n".join([heading, *lines]))
    return import_files("draco-csv", FORMATS["draco-csv"], [source], directory / "out", Given())


def refused(found: ImportedResults) -> list[tuple[int, str]]:
    return [(one["line"], one["reason"]) for one in found.note["refused"]]


def test_a_row_becomes_a_mean_with_its_standard_error_keeps_its_fields_and_what_was_not_recorded_is_null(
    tmp_path: Path,
) -> None:
    row = imported(tmp_path, line()).table.row(0, named=True)
    assert (row["workload"], row["backend"], row["workers"], row["variant"]) == ("merge", "dask", 8, "1.12.1")
    assert (row["wall_s"], row["reps"], row["bytes"]) == (0.5, 30, 10_240_000_000)
    assert row["wall_se"] == pytest.approx(0.5 * 0.05 / 2.56)
    assert json.loads(row["params"]) == {"frac_match": 0.6, "rows_per_chunk": 40_000_000}
    for name in ("block", "job", "order", "nodes", "protocol", "device", "transport", "started_at", "image"):
        assert row[name] is None
    assert json.loads(row["extra"]) == dict(zip(HEADING.split(","), line().split(","), strict=True))


def test_the_directory_that_draco_publishes_is_imported_with_the_tables_of_single_nodes_in_it(tmp_path: Path) -> None:
    """dask-cuda/ of rapidsai/dask-cuda-benchmarks, branch gh-pages, holds both kinds."""
    (tmp_path / "multi-node-merge.csv").write_text(f"{HEADING}\n{line()}\n")
    nightly = Path(__file__).parent / "fixtures" / "nightly"
    for table in nightly.glob("*.csv"):
        (tmp_path / table.name).write_bytes(table.read_bytes())
    found = import_files("draco-csv", FORMATS["draco-csv"], [tmp_path], tmp_path / "out", Given())
    assert [source["file"] for source in found.note["sources"]] == ["multi-node-merge.csv"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (line(backend="no-dask"), NO_MEASUREMENT),  # typed in by hand
        ("2022-07-11,8,dask", "3 fields, the heading has 11"),
        (line().replace("0.5,", "fast,", 1), "unreadable: wallclock 'fast'"),
        (line(date="2022-13-11"), "unreadable: date '2022-13-11T00:00:00'"),
        (line(date="0001-01-01"), "0001-01-01 is no day of a measurement"),
        (line(date="9999-12-31"), "9999-12-31 is no day of a measurement"),
        (line(s=1e308), "wall_s = 1e+308 is no number from 1e-15 to below 100000000.0"),
        (line().replace("0.5,", "1_0.5,", 1), "unreadable: wallclock '1_0.5'"),
        (line(workers=3 * 10**9), "workers = 3000000000 is no count from 0 to below 2147483648"),
        (line().replace("30.0", "1e12"), "reps = 1000000000000 is no count from 0 to below 2147483648"),
        (line().replace(",10240000000.0,", ",true,"), "unreadable: data_processed 'true'"),
        (line().replace(",2.56,", ",nan,"), "unreadable: throughput_mean 'nan'"),
        (line().replace("8.0", "8.5", 1), "unreadable: num_workers '8.5'"),
        (line().replace(",0.5,", ",0.4,"), "contradicts itself: wallclock makes 3.2 GB/s, throughput_mean 2.56"),
        ("\x00\x01 garbage", "1 field, the heading has 11"),
    ],
)
def test_a_bad_row_is_named_by_its_line_and_the_rest_is_kept(tmp_path: Path, bad: str, why: str) -> None:
    found = imported(tmp_path, line(), bad, line(workers=16))
    assert found.table["workers"].to_list() == [8, 16]
    assert refused(found) == [(3, why)]


def test_two_tables_in_one_file_are_told_apart(tmp_path: Path) -> None:
    other = "date,num_workers,ucx_version,wallclock,user_size,nreps\n2022-07-11,8,ucx-1.12.1,0.9,50000.0,30.0"
    assert sorted(imported(tmp_path, line(), other).table["workload"]) == ["merge", "transpose-sum"]


def test_rows_that_contradict_each_other_are_both_left_out_and_copies_count_once(tmp_path: Path) -> None:
    found = imported(tmp_path, line(), line(s=0.7), line(workers=16), line(workers=16), line(workers=32))
    assert found.table["workers"].to_list() == [16, 32]
    assert [one for one, _ in refused(found)] == [2, 3, 5]
    assert "says the same as multi-node-merge.csv:4" in refused(found)[2][1]


def test_the_same_files_give_the_same_bytes_and_are_read_back(tmp_path: Path) -> None:
    first = imported(tmp_path, line(), line(workers=16))
    before = [(first.directory / name).read_bytes() for name in ("import.json", "results.parquet")]
    imported(tmp_path, line(), line(workers=16))
    assert before == [(first.directory / name).read_bytes() for name in ("import.json", "results.parquet")]
    assert open_imported(first.directory).table.equals(pl.read_parquet(first.directory / "results.parquet"))


def test_nothing_usable_is_an_error_that_names_the_first_reason(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"multi-node-merge.csv:2: 1 field,"):
        imported(tmp_path, "hello")
    assert not (tmp_path / "out").exists()
