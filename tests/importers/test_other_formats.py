"""parsl-perf's output and MLflow's file store, both written by the real tools."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from gpubench.errors import DataError, UsageError
from gpubench.results.importers.directory import Given, ImportedResults, import_files
from gpubench.results.importers.formats import FORMATS
from tests.in_process import invoked

FIXTURES = Path(__file__).parent / "fixtures"


def imported(form: str, source: Path, tmp_path: Path, **given: str) -> ImportedResults:
    return import_files(form, FORMATS[form], [source], tmp_path / "out", Given(**given))


def reasons(found: ImportedResults) -> list[str]:
    return [f"{one['file']}:{one['line']}: {one['reason']}" for one in found.note["refused"]]


def test_the_last_batch_of_parsl_perf_is_the_result_and_those_before_are_warm_ups(tmp_path: Path) -> None:
    table = imported("parsl-perf", FIXTURES / "parsl_perf" / "estimate.out", tmp_path, variant="2026.10.26").table
    assert table["warmup"].to_list() == [True, True, False]
    last = table.row(2, named=True)
    assert (last["wall_s"], last["reps"], last["line"]) == (pytest.approx(4.373 / 5824), 5824, 15)
    assert (last["variant"], last["date"], last["workers"], last["nodes"]) == ("2026.10.26", None, None, None)
    assert json.loads(last["extra"])["submission_tps"] == 1383.124


def test_output_of_2023_ends_with_the_end_and_says_no_actual(tmp_path: Path) -> None:
    """As the manual of parsl prints it ("Measuring performance with parsl-perf"), shortened."""
    text = "\n".join(
        [
            *("==== Iteration 1 ====", "Will run 10 tasks to target 120 seconds runtime"),
            "Submission took 0.008008480072021484 seconds = 1248.676 tasks/second",
            *("Runtime: 3.668126344680786s vs target 120", "Tasks per second: 2.726"),
            *("==== Iteration 2 ====", "Will run 57640 tasks to target 120 seconds runtime"),
            "Submission took 34.839 seconds = 1654.487 tasks/second",
            *("Runtime: actual 364.387s vs target 120s", "Tasks per second: 158.184", "Cleaning up DFK", "The end"),
        ]
    )
    (tmp_path / "old.out").write_text(text)
    found = imported("parsl-perf", tmp_path / "old.out", tmp_path)
    assert (found.table["warmup"].to_list(), reasons(found)) == ([True, False], [])
    assert found.table["wall_s"].to_list() == pytest.approx([0.3668126, 364.387 / 57640])
    assert [json.loads(extra)["target_s"] for extra in found.table["extra"]] == [120, 120]


def test_output_that_was_cut_off_has_warm_ups_alone_says_where_and_compare_says_so_too(tmp_path: Path) -> None:
    lines = (FIXTURES / "parsl_perf" / "estimate.out").read_text().splitlines()
    (tmp_path / "cut.out").write_text("\n".join(lines[:18]))
    found = imported("parsl-perf", tmp_path / "cut.out", tmp_path, date=dt.date(2026, 1, 1), variant="a")
    assert found.table["warmup"].to_list() == [True, True]
    assert reasons(found)[0] == "cut.out:15: iteration 3 is cut off, or has no time"
    (tmp_path / "open.out").write_text("\n".join(lines[: lines.index("Tests complete - leaving DFK block")]))
    found = imported("parsl-perf", tmp_path / "open.out", tmp_path / "o", date=dt.date(2026, 1, 1), variant="a")
    assert reasons(found) == [
        "open.out:15: the output ends before 'Tests complete', so iteration 3 may not be the last, which counts"
    ]
    assert (found.note["rows_in"], found.note["kept"], found.table["warmup"].to_list()) == (3, 2, [True, True])
    done = invoked("compare", tmp_path / "out")
    assert f"every row of {tmp_path / 'out'} is a warm-up, so there is nothing to compare" in str(done.exception)
    assert invoked("report", tmp_path / "out").exit_code == 0
    assert "every row is a warm-up, so nothing is left to judge" in (tmp_path / "out" / "report.md").read_text()


def test_files_of_one_name_are_kept_apart_by_the_version_that_they_are_said_to_be_of(tmp_path: Path) -> None:
    given = []
    for label, source in (("old", "estimate"), ("new", "explicit")):
        (tmp_path / label).mkdir()
        shutil.copy(FIXTURES / "parsl_perf" / f"{source}.out", tmp_path / label / "perf.out")
        given.append(Path(f"{label}={tmp_path / label / 'perf.out'}"))
    found = import_files("parsl-perf", FORMATS["parsl-perf"], given, tmp_path / "out", Given())
    assert found.note["refused"] == []
    assert dict(found.table.group_by("variant").len().iter_rows()) == {"old": 3, "new": 3}


def test_a_file_cannot_be_of_two_versions(tmp_path: Path) -> None:
    file = shutil.copy(FIXTURES / "parsl_perf" / "estimate.out", tmp_path / "perf.out")
    for first, said in ((f"old={file}", "as old"), (file, "without a version")):
        paths = [Path(first), Path(f"new={file}")]
        with pytest.raises(UsageError, match=f"perf.out is given as new and {said}"):
            import_files("parsl-perf", FORMATS["parsl-perf"], paths, tmp_path / "out", Given())
        assert not (tmp_path / "out").exists()
    paths = [Path(f"old={file}"), tmp_path]  # a folder of others, too: what is said of the file stays
    found = import_files("parsl-perf", FORMATS["parsl-perf"], paths, tmp_path / "out", Given())
    assert found.table["variant"].unique().to_list() == ["old"]


def test_two_outputs_in_one_file_are_two_runs(tmp_path: Path) -> None:
    both = [(FIXTURES / "parsl_perf" / f"{name}.out").read_text() for name in ("estimate", "explicit")]
    (tmp_path / "both.out").write_text("2026.10.26\n" + "\n".join(both))
    table = imported("parsl-perf", tmp_path / "both.out", tmp_path).table
    assert table.filter(~table["warmup"])["run"].to_list() == ["both.out:1", "both.out:2"]
    assert table["variant"].unique().to_list() == ["parsl 2026.10.26"]


def test_the_runs_of_an_archive_come_with_date_version_and_everything_that_was_logged(tmp_path: Path) -> None:
    found = imported("mlflow", FIXTURES / "mlflow", tmp_path)
    assert found.table.height == 2
    row = next(row for row in found.table.iter_rows(named=True) if row["reps"] == 5824)
    assert row["wall_s"] == pytest.approx(4.373 / 5824)
    assert (row["date"], row["variant"]) == (dt.date(2026, 11, 21), "parsl 2026.10.26")
    assert json.loads(row["params"])["provider"] == "LocalProvider"
    extra = json.loads(row["extra"])
    assert extra["params"]["cores_per_node"] == "2"
    assert extra["metrics"]["num_iterations"][0][1] == 3
    assert [one.partition(": ")[2] for one in reasons(found)] == ["deleted in the tracker"]


def test_a_failed_run_and_a_torn_metric_are_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(FIXTURES / "mlflow", store)
    good = [
        one for one in store.rglob("meta.yaml") if "status: 3" in one.read_text() and "stage: active" in one.read_text()
    ]
    good[0].write_text(good[0].read_text().replace("status: 3", "status: 4"))
    metric = good[1].parent / "metrics" / "submission_s"
    metric.write_text(metric.read_text() + "\n\x00torn")
    found = imported("mlflow", store, tmp_path)
    assert found.table.height == 1
    said = " | ".join(reasons(found))
    assert "not finished (status 4)" in said
    assert "metrics/submission_s:2: no metric" in said


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe\x80" * 50, b"{", b"a,b\n1,2\n", b"[" * 100_000])
def test_rubbish_is_refused_by_every_importer_without_a_traceback(form: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_bytes(content)
    with pytest.raises(DataError):
        imported(form, tmp_path / "rubbish", tmp_path)


def test_a_line_in_which_two_outputs_run_together_costs_its_batch_alone(tmp_path: Path) -> None:
    text = (FIXTURES / "parsl_perf" / "estimate.out").read_text()
    torn = text.replace("Runtime: actual ", "Runtime: actual 1.2.", 1)
    assert torn != text
    (tmp_path / "torn.out").write_text(torn)
    found = imported("parsl-perf", tmp_path / "torn.out", tmp_path)
    assert found.table.height == 2
    assert len(reasons(found)) == 1
    assert "iteration 1 is cut off, or has no time" in reasons(found)[0]
