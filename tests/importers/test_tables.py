"""Any table by a map of its columns, and imports that fail because most of a source is refused."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from gpubench.errors import DataError, UsageError
from gpubench.results.importers.base import day
from gpubench.results.importers.column_map import FIELDS
from gpubench.results.importers.directory import Given, ImportedResults, import_files, open_imported
from gpubench.results.importers.formats import FORMATS
from gpubench.results.importers.summary import import_lines
from gpubench.results.merge.table_files import TIMES
from tests.conftest import ROOT

FIXTURES = Path(__file__).parent / "fixtures"
MAP = "wall_s=seconds,variant=build,date=day,params.rows=n,workers=gpus"
TABLE = "seconds,build,day,n,gpus,host\n1.5,1.18.0,2026-11-07,1000,8,a\n1.25,1.19.0,2026-11-07,1000,8,b\n"


def imported(
    tmp_path: Path, source: Path | str, columns: str | None, *, name: str = "join.csv", form: str = "table"
) -> ImportedResults:
    if isinstance(source, str):
        (tmp_path / name).write_text(source)
        source = tmp_path / name
    return import_files(form, FORMATS[form], [source], tmp_path / source.suffix[1:], Given(columns=columns))


def test_the_manual_names_every_field_that_a_column_can_fill() -> None:
    text = (ROOT / "docs" / "old-results.md").read_text(encoding="utf-8")
    assert [field for field in (*TIMES, *FIELDS) if f"`{field}`" not in text] == []


def test_columns_fill_the_fields_that_the_map_names_and_the_others_stay_beside_them(tmp_path: Path) -> None:
    row = imported(tmp_path, TABLE, MAP).table.row(0, named=True)
    assert (row["wall_s"], row["variant"], row["date"], row["workers"]) == (1.5, "1.18.0", dt.date(2026, 11, 7), 8)
    assert (row["workload"], row["params"], row["reps"]) == ("join", '{"rows":1000}', None)
    assert json.loads(row["extra"])["host"] == "a"


def test_a_parquet_file_gives_what_its_csv_gives(tmp_path: Path) -> None:
    plain = imported(tmp_path, TABLE, MAP).table.drop("file", "line", "campaign", "extra", "run")
    pl.read_csv(tmp_path / "join.csv", try_parse_dates=True).write_parquet(tmp_path / "join.parquet")
    packed = imported(tmp_path, tmp_path / "join.parquet", MAP).table
    assert packed.drop("file", "line", "campaign", "extra", "run").equals(plain)
    assert packed["line"].to_list() == [1, 2]


def test_types_of_a_parquet_file_are_read(tmp_path: Path) -> None:
    at = dt.datetime(2026, 11, 7, 10, tzinfo=dt.UTC)
    columns = {"wall_s": [1.0, 2.0], "warmup": [True, False], "started_at": [at, at], "rep": [0, 1], "bytes": [None, 8]}
    pl.DataFrame(columns).write_parquet(tmp_path / "a.parquet")
    table = imported(tmp_path, tmp_path / "a.parquet", None).table.sort("rep")
    assert (table["warmup"].to_list(), table["bytes"].to_list()) == ([True, False], [None, 8])
    assert table["started_at"].to_list() == [at, at]


def test_columns_that_are_called_as_ours_need_no_map(tmp_path: Path) -> None:
    found = imported(tmp_path, "wall_s,variant,block\n2,a,7\n3,b,7\n", None)
    assert (found.table["wall_s"].to_list(), found.table["variant"].to_list()) == ([2.0, 3.0], ["a", "b"])
    assert found.table["block"].to_list() == [None, None]
    assert list(import_lines(found))[-1].endswith("the column block is not used: gpubench compare FILE pairs by block")


@pytest.mark.parametrize(("field", "unit"), [("wall_s", 1.0), ("wall_ms", 1e-3), ("wall_us", 1e-6)])
def test_a_time_and_its_standard_error_may_have_another_unit(tmp_path: Path, field: str, unit: float) -> None:
    row = imported(tmp_path, "t,e\n250,0.25\n", f"{field}=t,wall_se=e").table.row(0, named=True)
    assert (row["wall_s"], row["wall_se"]) == pytest.approx((250 * unit, 0.25 * unit))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("wall_s=a,block=b", "no field 'block'; there are wall_s, .*params.NAME"),
        ("wall_s=a,params.=b", "no field 'params.'"),
    ],
)
def test_a_map_that_is_none_is_refused_in_one_line(tmp_path: Path, columns: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        imported(tmp_path, TABLE, columns)
    assert not (tmp_path / "out").exists()


def test_other_formats_take_no_map(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="format draco-csv has columns of its own"):
        imported(tmp_path, TABLE, MAP, form="draco-csv")


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column took: there are seconds, build, day, n, gpus, host"):
        imported(tmp_path, TABLE, "wall_s=took")
    pl.DataFrame({"seconds": [1.0]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no column took: there are seconds"):
        imported(tmp_path, tmp_path / "a.parquet", "wall_s=took")


@pytest.mark.parametrize(
    ("cell", "columns", "reason"),
    [
        ("-1", "wall_s=t", "t '-1' is no wall_s"),
        ("", "wall_s=t", "t is empty"),
        ("x", "wall_s=u,workers=t", "t 'x' is no workers"),
        ("yesterday", "wall_s=u,date=t", "t 'yesterday' is no date"),
        ("2026-11-07T10:00:00", "wall_s=u,started_at=t", "t '2026-11-07T10:00:00' is no started_at"),
        ("wrong", "wall_s=u,answer=t", "its answer was wrong"),
    ],
)
def test_a_cell_that_no_field_can_hold_costs_its_row(tmp_path: Path, cell: str, columns: str, reason: str) -> None:
    good = {"wall_s=t": "5", "wall_s=u,workers=t": "4", "wall_s=u,date=t": "20261107"}.get(columns, "")
    good = "ok" if "answer" in columns else good
    found = imported(tmp_path, f"t,u\n{good},1\n{cell},1\n", columns)
    assert [(one["line"], one["reason"]) for one in found.note["refused"]] == [(3, reason)]
    assert found.table.height == 1


@pytest.mark.parametrize("column", ["status", "run_status", "workload_status"])
@pytest.mark.parametrize("status", ["failed", "skipped", "lost"])
def test_a_row_that_says_that_it_has_no_time_has_none(tmp_path: Path, column: str, status: str) -> None:
    found = imported(tmp_path, f"wall_s,{column}\n1.5,ok\n0.01,{status}\n", None)
    assert [(row["line"], row["reason"]) for row in found.note["refused"]] == [(3, f"{column} is {status}")]
    assert found.table["wall_s"].to_list() == [1.5]


def test_where_most_rows_of_a_file_are_refused_nothing_is_imported_and_an_earlier_import_stays(tmp_path: Path) -> None:
    bad = "".join(f"x{number}\n" for number in range(3))
    kept = imported(tmp_path, f"t\n1\n2\n3\n{bad}", "wall_s=t")
    assert kept.note["kept"] == 3
    with pytest.raises(DataError) as raised:
        imported(tmp_path, f"t\n1\n2\n{bad}", "wall_s=t")
    assert str(raised.value).startswith(
        "3 of 5 rows of join.csv are refused, so nothing is imported; the first: join.csv:4: t 'x0' is no wall_s"
    )
    assert open_imported(kept.directory).note["kept"] == 3


def test_where_most_files_are_refused_nothing_is_imported_and_copies_are_no_loss(tmp_path: Path) -> None:
    for number, text in enumerate(["1", "x", "y"]):
        (tmp_path / f"{number}.csv").write_text(f"t\n{text}\n")
    paths = sorted(tmp_path.glob("*.csv"))
    with pytest.raises(DataError, match=r"2 of 3 rows of all files are refused.*the first: 1.csv:2: t 'x'"):
        import_files("table", FORMATS["table"], paths, tmp_path / "out", Given(columns="wall_s=t"))
    (tmp_path / "copies").mkdir()
    rows = "date,num_workers,ucx_version,wallclock\n" + "2022-07-11,8,1.12.1,0.5\n" * 5
    (tmp_path / "copies" / "merge.csv").write_text(rows)
    found = import_files("draco-csv", FORMATS["draco-csv"], [tmp_path / "copies"], tmp_path / "out", Given())
    assert (found.note["kept"], len(found.note["refused"])) == (1, 4)
    for name in ("a.out", "b.out", "c.out"):
        shutil.copy(FIXTURES / "parsl_perf" / "estimate.out", tmp_path / "copies" / name)
    found = import_files("parsl-perf", FORMATS["parsl-perf"], [tmp_path / "copies"], tmp_path / "parsl", Given())
    assert [one["reason"] for one in found.note["refused"]] == ["the same bytes as a.out"] * 2


@pytest.mark.parametrize("columns", ["wall_s=seconds", "workload=test,wall_s=seconds,params.unit=unit"])
def test_a_cell_that_is_called_like_a_column_makes_no_heading_of_its_row(tmp_path: Path, columns: str) -> None:
    table = "test,seconds,unit\ntest,1.2,seconds\nbad,,seconds\nbad,nan,seconds\nother,1.4,seconds\n"
    found = imported(tmp_path, table * 2, columns)
    assert found.table["wall_s"].to_list() == [1.2, 1.4, 1.2, 1.4]
    assert [one["line"] for one in found.note["refused"]] == [3, 4, 8, 9]


def test_a_table_with_semicolons_and_decimal_commas_is_read_as_its_plain_twin(tmp_path: Path) -> None:
    plain = imported(tmp_path, TABLE, MAP).table.drop("extra", "run")
    other = imported(tmp_path, TABLE.replace(",", ";").replace("1.5;", "1,5;").replace("1.25;", "1,25;"), MAP).table
    assert other.drop("extra", "run").equals(plain)


def test_columns_that_the_map_does_not_name_count_by_their_own_names(tmp_path: Path) -> None:
    text = "took,variant,date,ucx_version\n1.5,a,2026-11-07,1.19.0\n"
    row = imported(tmp_path, text, "wall_s=took").table.row(0, named=True)
    assert (row["variant"], row["date"], row["ucx_version"]) == ("a", dt.date(2026, 11, 7), "1.19.0")
    row = imported(tmp_path, text.replace("took", "wall_ms"), "variant=ucx_version").table.row(0, named=True)
    assert (row["variant"], row["wall_s"]) == ("1.19.0", 0.0015)
    with pytest.raises(DataError, match="no column wall_s: there are took"):
        imported(tmp_path, text, "variant=ucx_version")


def test_a_version_is_the_variant_and_a_time_has_a_day_where_nothing_else_says_them(tmp_path: Path) -> None:
    text = "wall_s,ucx_version,started_at\n1.5,1.19.0,2026-11-07T23:30:00-08:00\n"
    row = imported(tmp_path, text, None).table.row(0, named=True)
    assert (row["variant"], row["date"]) == ("1.19.0", dt.date(2026, 11, 8))


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("date", "03/01/2024"),
        ("started_at", "2024-01-02T10:00:00"),
        ("nodes", "n001"),
        ("warmup", "no"),
        ("answer", "42"),
    ],
)
def test_a_column_that_is_only_called_as_ours_and_holds_something_else_costs_no_row(
    tmp_path: Path, name: str, cell: str
) -> None:
    found = imported(tmp_path, f"t,build,{name}\n1.5,a,{cell}\n", "wall_s=t,variant=build")
    assert (found.table.height, found.note["refused"]) == (1, [])
    assert json.loads(found.table["extra"][0])[name] == cell


def test_a_label_beats_a_column_that_is_called_variant(tmp_path: Path) -> None:
    (tmp_path / "lab.csv").write_text("t,variant\n1.5,tcp\n")
    given = Given(columns="wall_s=t")
    found = import_files("table", FORMATS["table"], [Path(f"old={tmp_path / 'lab.csv'}")], tmp_path / "out", given)
    assert found.table["variant"].to_list() == ["old"]


def test_a_file_whose_numbers_are_in_doubt_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("wall_s,variant\n1.5,a\n")
    (tmp_path / "in" / "b.csv").write_text("wall_s;variant\n1,500;a\n")
    found = import_files("table", FORMATS["table"], [tmp_path / "in"], tmp_path / "out", Given())
    assert found.table["wall_s"].to_list() == [1.5]
    assert [refusal["file"] for refusal in found.note["refused"]] == ["b.csv"]


def test_with_decimal_commas_exponents_are_numbers_and_names_stay_as_they_are(tmp_path: Path) -> None:
    table = imported(tmp_path, "wall_s;variant\n5,12E-01;1,2\n0,5;1,2\n", None).table
    assert sorted(table["wall_s"]) == [0.5, 0.512]
    assert set(table["variant"]) == {"1,2"}


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("11.07.2022", dt.date(2022, 7, 11)),
        ("11.07.2022 09:30", dt.date(2022, 7, 11)),
        ("20220711", dt.date(2022, 7, 11)),
        ("11/07/2022", None),
        ("44753", None),
    ],
)
def test_a_date_that_may_mean_two_days_or_is_a_number_is_none(text: str, date: dt.date | None) -> None:
    assert day(text) == date
