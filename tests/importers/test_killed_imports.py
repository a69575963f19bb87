"""An import that was killed at any moment can be repeated, and none of its states is read as an import."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from gpubench.errors import DataError, UsageError
from gpubench.results.importers.directory import NOTE, TABLE, Given, ImportedResults, import_files, open_imported
from gpubench.results.importers.formats import FORMATS
from tests.cli.archive import draco_archive

GIVEN = Given(None, dt.date(2025, 11, 7), None)


def imported(out: Path) -> ImportedResults:
    return import_files("draco-csv", FORMATS["draco-csv"], [draco_archive()], out, GIVEN)


@pytest.mark.parametrize(
    "left", [[], [".results.parquet.0a1b2c3d.tmp"], [TABLE], [TABLE, ".import.json.0a1b2c3d.tmp"]], ids=len
)
def test_an_import_that_was_killed_is_repeated(tmp_path: Path, left: list[str]) -> None:
    out = tmp_path / "draco"
    out.mkdir()
    for name in left:
        (out / name).write_bytes(b"cut o")
    imported(out)
    assert sorted(path.name for path in out.iterdir()) == [NOTE, TABLE]
    assert open_imported(out).note["kept"] == 653


def test_a_directory_with_something_else_in_it_is_refused_as_before(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_bytes(b"")
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="is not empty, and no import"):
        imported(tmp_path)


def test_a_new_table_beside_the_note_of_the_import_before_it_is_not_believed(tmp_path: Path) -> None:
    imported(tmp_path / "a")
    note = (tmp_path / "a" / NOTE).read_text()
    changed = Given(None, None, "elsewhere")
    import_files("draco-csv", FORMATS["draco-csv"], [draco_archive()], tmp_path / "a", changed)
    (tmp_path / "a" / NOTE).write_text(note)
    with pytest.raises(
        DataError, match=r"results\.parquet isn't what import\.json speaks of.*; import the results again"
    ):
        open_imported(tmp_path / "a")


def test_an_import_of_other_files_is_not_replaced_and_one_of_the_same_files_takes_its_page_along(
    tmp_path: Path,
) -> None:
    """Seen: a CSV of ten rows in the place of the Draco history, whose page stayed beside them."""
    out = tmp_path / "draco"
    imported(out)
    (out / "report.html").write_text("of the first import")
    other = tmp_path / "other.csv"
    other.write_bytes(draco_archive().read_bytes())
    with pytest.raises(
        UsageError, match=r"draco holds an import of draco-csv, draco-.*\.csv, which this one would rep"
    ):
        import_files("draco-csv", FORMATS["draco-csv"], [other], out, GIVEN)
    assert (out / "report.html").exists()
    import_files("draco-csv", FORMATS["draco-csv"], [draco_archive(), other], out, GIVEN)
    assert not (out / "report.html").exists()
