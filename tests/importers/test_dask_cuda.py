"""Files that dask-cuda wrote (``fixtures/README.md``)."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from gpubench.results.importers.directory import Given, ImportedResults, import_files
from gpubench.results.importers.formats import FORMATS

FIXTURES = Path(__file__).parent / "fixtures" / "dask_cuda"
MERGE = "nnodes-002-cudf-merge-dask"


def imported(source: Path, out: Path) -> ImportedResults:
    return import_files("dask-cuda", FORMATS["dask-cuda"], [source], out, Given())


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """As Draco's jobs laid them out."""
    place = tmp_path / "outputs" / "20220711" / "ucx-1.12.1"
    shutil.copytree(FIXTURES, place)
    (place / "version-info.json").write_text('{"ucx": "abc123", "dask": "2022.7.0"}')
    return place


def test_every_repetition_of_a_file_is_a_row_of_one_run_with_every_field(tmp_path: Path) -> None:
    found = imported(FIXTURES / f"{MERGE}.json", tmp_path / "out")
    plain = json.loads((FIXTURES / f"{MERGE}.json").read_text())
    assert found.table["wall_s"].to_list() == list(plain["wallclock"].values())
    assert found.table["run"].unique().to_list() == [MERGE]
    assert found.table["rep"].to_list() == [0, 1, 2]
    row = found.table.row(0, named=True)
    assert (row["workload"], row["workers"], row["protocol"], row["device"]) == ("merge", 2, "tcp", "cpu")
    assert (row["variant"], row["ucx_version"], row["date"], row["block"], row["nodes"]) == (None,) * 5
    assert json.loads(row["extra"]) == {name: column["0"] for name, column in plain.items()}


def test_the_path_says_date_and_version_and_a_rerun_its_own_day(dated: Path, tmp_path: Path) -> None:
    found = imported(dated.parent.parent, tmp_path / "out")
    assert found.table["variant"].unique().to_list() == ["1.12.1"]
    days = {run.rpartition("/")[2]: date for run, date in found.table.select("run", "date").iter_rows()}
    assert days[MERGE] == dt.date(2022, 7, 11)
    assert days[f"{MERGE}-20261121.0"] == dt.date(2026, 11, 21)
    assert sorted(found.table["workload"].unique()) == ["groupby", "merge", "shuffle", "transpose-sum"]
    assert {"ucx": "abc123", "dask": "2022.7.0"} in found.note["documents"].values()


@pytest.mark.parametrize("name", ["cut.json", "list.json", "other.json"])
def test_a_file_that_is_no_result_is_named_and_the_others_are_kept(dated: Path, tmp_path: Path, name: str) -> None:
    text = (dated / f"{MERGE}.json").read_text()
    (dated / name).write_text({"cut.json": text[:300], "list.json": "[1, 2]", "other.json": '{"a": {"0": 1}}'}[name])
    found = imported(dated, tmp_path / "out")
    assert found.table.height == 15
    assert [(one["file"], one["line"]) for one in found.note["refused"]] == [(name, 1)]


def test_a_repetition_without_a_time_is_refused_alone(dated: Path, tmp_path: Path) -> None:
    plain = json.loads((dated / f"{MERGE}.json").read_text())
    plain["wallclock"]["1"] = None
    (dated / f"{MERGE}.json").write_text(json.dumps(plain))
    found = imported(dated / f"{MERGE}.json", tmp_path / "out")
    assert found.table["rep"].to_list() == [0, 2]
    assert found.note["refused"][0]["line"] == 2
