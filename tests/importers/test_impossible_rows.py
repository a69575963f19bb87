"""Odd values end no import; spellings of one version are one; hardware is part of a cell."""

from __future__ import annotations

import csv
import datetime as dt
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpubench.errors import DataError
from gpubench.results.importers.base import plain_version, positive
from gpubench.results.importers.directory import Given, ImportedResults, import_files
from gpubench.results.importers.formats import FORMATS
from gpubench.results.importers.summary import import_lines
from gpubench.results.imports import import_results

FIXTURES = Path(__file__).parent / "fixtures"
GOOD = {
    "date": "20220711",
    "num_workers": "8",
    "backend": "dask",
    "ucx_version": "1.12.1",
    "wallclock": "2.0",
    "data_processed": "32e9",
    "throughput_mean": "2.0",
    "throughput_std": "0.1",
    "nreps": "30",
    "worker_threads": "1",
    "rows_per_chunk": "1e8",
    "frac_match": "0.6",
}
ODD = [
    "0001",
    "9999-01-01",
    "1e308",
    "-1",
    "0",
    "1_0.5",
    "true",
    "nan",
    "inf",
    "1e400",
    "2147483648",
    "",
    "٣",
    "\x1b",
    "9" * 400,
]


def draco(tmp_path: Path, *rows: dict[str, str]) -> ImportedResults:
    path = tmp_path / "multi-node-merge.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(GOOD))
        writer.writeheader()
        writer.writerows([GOOD | {"num_workers": "16", "throughput_mean": "1.0"}, *rows])
    return import_files("draco-csv", FORMATS["draco-csv"], [path], tmp_path / "out", Given())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(list(GOOD)), st.sampled_from(ODD), min_size=1))
def test_odd_fields_of_csv_never_end_an_import(tmp_path: Path, changes: dict[str, str]) -> None:
    assert draco(tmp_path, GOOD | changes).table.height in (1, 2)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["wallclock", "data_processed", "nreps", "num_workers", "worker_threads", "rows_per_chunk"]),
    st.sampled_from([*ODD, True, None, -1, 0, 10**400, 1e308, [], {}]),
)
def test_odd_values_of_json_never_end_an_import(tmp_path: Path, field: str, value: Any) -> None:
    source = FIXTURES / "dask_cuda" / "nnodes-002-cudf-merge-dask.json"
    table = json.loads(source.read_text())
    table[field] = dict.fromkeys(table[field], value)
    (tmp_path / "odd.json").write_text(json.dumps(table))
    try:
        found = import_files("dask-cuda", FORMATS["dask-cuda"], [tmp_path / "odd.json"], tmp_path / "out", Given())
    except DataError as error:
        refused = [str(error).partition("the first: ")[2].partition(":")[0]]
    else:
        refused = [one["file"] for one in found.note["refused"]]
    assert set(refused) <= {"odd.json"}


@pytest.mark.parametrize(
    ("form", "name", "line", "odd"),
    [
        ("parsl-perf", "parsl_perf/estimate.out", "Tasks per second: ", "Tasks per second: 99999.9"),
        ("parsl-perf", "parsl_perf/estimate.out", "Runtime: actual ", "Runtime: actual 1e308s"),
        (
            "parsl-perf",
            "parsl_perf/estimate.out",
            "Will run ",
            f"Will run {'9' * 400} tasks to target 120 seconds runtime",
        ),
    ],
)
def test_odd_lines_of_parsl_perf_are_refused_with_their_line(
    tmp_path: Path, form: str, name: str, line: str, odd: str
) -> None:
    lines = (FIXTURES / name).read_text().splitlines()
    at = max(number for number, one in enumerate(lines) if one.startswith(line))
    (tmp_path / "odd.out").write_text("\n".join([*lines[:at], odd, *lines[at + 1 :]]))
    found = import_files(form, FORMATS[form], [tmp_path / "odd.out"], tmp_path / "out", Given())
    (one,) = found.note["refused"]
    assert (one["file"], one["line"] > 1) == ("odd.out", True)


def test_spellings_of_one_version_are_one(tmp_path: Path) -> None:
    rows = [
        GOOD | {"date": f"2022071{day}", "ucx_version": version}
        for day, version in enumerate(["v1.12.1", "ucx-1.12.1", "UCX-1.12.1", "1.12.1 ", "ucx-v1.12.1"])
    ]
    found = draco(tmp_path, *rows)
    assert found.table["ucx_version"].unique().to_list() == ["1.12.1"]
    assert [line for line in import_lines(found) if line.startswith("spellings")] == [
        "spellings of versions, read as one: 'UCX-1.12.1', 'ucx-1.12.1', 'ucx-v1.12.1', 'v1.12.1' as 1.12.1"
    ]
    for other in ("master", "1", "1.14.x", "v1.15.x", "abc1234", "parsl 2026.10.26", "dev", "", None):
        expected = other.removeprefix("v") if other else other
        assert plain_version(other) == expected


def test_pods_of_other_sizes_are_other_cells(tmp_path: Path) -> None:
    store = Path(shutil.copytree(FIXTURES / "mlflow", tmp_path / "mlflow"))
    form = FORMATS["mlflow"]
    before = import_files("mlflow", form, [store], tmp_path / "before", Given(variant="a", date=dt.date(2026, 1, 1)))
    first = sorted(store.rglob("cores_per_node"))[0]
    first.write_text("64")
    after = import_files("mlflow", form, [store], tmp_path / "after", Given(variant="a", date=dt.date(2026, 1, 1)))
    cells = [set(import_results(found.directory, found.note, found.table).keys) for found in (before, after)]
    assert len(cells[1]) == len(cells[0]) + 1


def test_a_number_is_written_as_people_write_numbers() -> None:
    assert [positive(one) for one in ("1.5", " 2 ", "1e3", ".5", 3, 0.1)] == [1.5, 2.0, 1000.0, 0.5, 3.0, 0.1]
    assert [positive(one) for one in ("1_0", "٣", "0x10", "nan", "", True, None, -1, 0, 10**400)] == [None] * 10
