"""The single-node nightly tables of the Draco site; the fixtures are rows of the published files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpubench.errors import DataError
from gpubench.results.importers.directory import Given, ImportedResults, import_files
from gpubench.results.importers.formats import FORMATS

FIXTURES = Path(__file__).parent / "fixtures" / "nightly"
MERGE = FIXTURES / "single_node_merge_performance.csv"


def imported(out: Path, *paths: Path | str) -> ImportedResults:
    return import_files("nightly", FORMATS["nightly"], [Path(path) for path in paths], out / "out", Given())


def edited(directory: Path, old: str, new: str) -> Path:
    """The merge table with one text of it replaced, once."""
    text = MERGE.read_text()
    assert old in text
    path = directory / MERGE.name
    path.write_text(text.replace(old, new, 1))
    return path


def refused(found: ImportedResults) -> list[tuple[int, str]]:
    return [(one["line"], one["reason"]) for one in found.note["refused"]]


def test_every_row_of_both_published_tables_is_kept(tmp_path: Path) -> None:
    found = imported(tmp_path, FIXTURES)
    assert (found.note["rows_in"], found.note["kept"], found.note["refused"]) == (15, 15, [])
    assert sorted(found.table["workload"].unique()) == ["merge", "transpose-sum"]
    # Where the column of GPUs is empty, their number follows from the rate.
    assert (found.table["workers"].unique().to_list(), found.table["nodes"].unique().to_list()) == ([8], [1])


def test_a_row_has_the_version_of_its_columns_and_a_label_names_only_rows_without_one(tmp_path: Path) -> None:
    rows = imported(tmp_path, MERGE).table.sort("line").rows(named=True)
    assert [row["variant"] for row in rows[2:6]] == [None, "1.12.1", "1.12.1", "1.14.0"]
    assert json.loads(rows[3]["extra"])["ucx_revision"] == "dc92435"
    rows = imported(tmp_path, f"early={MERGE}").table.sort("line").rows(named=True)
    assert [row["variant"] for row in rows[2:4]] == ["early", "1.12.1"]


def test_the_transports_that_a_run_was_allowed_are_part_of_its_cell_and_two_runs_of_a_day_two_rows_of_it(
    tmp_path: Path,
) -> None:
    rows = imported(tmp_path, MERGE).table.sort("line").rows(named=True)
    said = [(row["protocol"], json.loads(row["params"])["transports"]) for row in rows[:2] + rows[3:5]]
    assert said == [("tcp", "tcp"), ("ucx", "infiniband"), ("ucx", "nvlink"), ("ucx", "nvlink+infiniband")]
    first, second = rows[5:7]
    assert [(row["variant"], str(row["date"])) for row in (first, second)] == [("1.14.0", "2022-04-19")] * 2
    assert first["params"] == second["params"]
    assert [row["wall_s"] for row in (first, second)] == [1.140096, 1.0766460000000002]


def test_the_same_run_in_two_tables_counts_once(tmp_path: Path) -> None:
    again = tmp_path / "older.csv"
    again.write_text("".join(MERGE.read_text().splitlines(keepends=True)[:6]))
    found = imported(tmp_path, again, MERGE)
    assert (found.note["kept"], len(found.note["refused"])) == (10, 5)


def test_a_merge_has_the_standard_error_of_its_rate_and_a_transpose_none(tmp_path: Path) -> None:
    table = imported(tmp_path, FIXTURES).table
    merge = table.filter(workload="merge", line=9).row(0, named=True)
    assert merge["wall_se"] == pytest.approx(1.372 * 97657836.12417924 / 2332690177.640381)
    assert merge["reps"] is None
    assert table.filter(workload="transpose-sum")["wall_se"].null_count() == 5


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (",27.754,", ",fast,", "unreadable: wallclock_mean 'fast'"),
        (",27.754,", ",37.754,", "contradicts itself: wallclock_mean and throughput_mean make 5.881 GPUs"),
        ("2021-03-01T", "2021-13-01T", "unreadable: timestamp '2021-13-01T00:00:00'"),
        ("False,False,True", "False,maybe,True", "unreadable: infiniband 'maybe'"),
        ("1.0,8.0\n", "1.0,4.0\n", "contradicts itself: wallclock_mean and throughput_mean make 7.998 GPUs, not 4"),
    ],
)
def test_a_bad_row_is_named_by_its_line_and_the_rest_is_kept(tmp_path: Path, old: str, new: str, why: str) -> None:
    found = imported(tmp_path, edited(tmp_path, old, new))
    ((_, reason),) = refused(found)
    assert (found.note["kept"], reason) == (9, why)


def test_the_multi_node_table_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    other = tmp_path / "multi-node-merge.csv"
    other.write_text("date,num_workers,wallclock,timestamp\n2022-07-11,8,0.5,2022-07-11\n")
    with pytest.raises(DataError, match="a heading without protocol, data_processed, wallclock_mean, throughput_mean"):
        imported(tmp_path, other)
