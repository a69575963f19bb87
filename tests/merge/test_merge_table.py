import io
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from campaign_builder import Writer, begin, finish, make_plan

from gpubench.node.writer.run_dir import finish as write_record
from gpubench.results.merge import samples
from gpubench.results.merge.samples import FinishedRun
from gpubench.results.merge.table import COLUMNS, RESULTS, merge_directory, parquet
from gpubench.store.campaign import Campaign
from tests.merging import merge, read_runs


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    campaign = begin(tmp_path_factory.mktemp("c") / "campaign", make_plan(blocks=3))
    finish(campaign)
    return campaign


@pytest.fixture(scope="module")
def runs(campaign: Campaign) -> tuple[FinishedRun, ...]:
    return read_runs(campaign.runs_dir).runs


@pytest.fixture
def copy(campaign: Campaign, tmp_path: Path) -> Path:
    """The directory of runs of a copy of the campaign."""
    return shutil.copytree(campaign.directory, tmp_path / "copy") / "runs"


def test_exactly_the_columns_of_the_design(runs: tuple[FinishedRun, ...]) -> None:
    frame = merge(runs).frame
    design = (
        "campaign site job block run attempt order variant image ucx_version transport protocol device nodes "
        "workers_per_node threads_per_worker workload backend params rep warmup wall_s bytes answer started_at "
        "cpu_s energy_j throttle"
    )
    assert frame.columns == [*design.split(), "run_status", "workload_status"]
    assert dict(frame.schema) == COLUMNS
    assert frame.height == 6 * (2 * 31 + 3 * 7)
    row = frame.row(0, named=True)
    assert json.loads(row["params"]) == {"frac_match": 0.3, "rows_per_worker": 200_000}
    assert (row["transport"], row["warmup"], row["answer"]) == ("tcp", True, "ok")
    assert row["started_at"].isoformat().startswith("2025-11-20T14:00")


def test_nothing_merged_is_an_empty_table_of_the_same_shape() -> None:
    assert dict(merge([]).frame.schema) == COLUMNS
    assert merge([]).frame.height == 0


def test_parquet_reads_back_and_names_its_schema(runs: tuple[FinishedRun, ...]) -> None:
    frame = merge(runs).frame
    data = parquet(frame)
    assert pl.read_parquet(io.BytesIO(data)).equals(frame)
    assert pl.read_parquet_metadata(io.BytesIO(data))["schema"] == RESULTS


def test_what_was_cut_off_when_a_run_was_killed_is_no_sample(runs: tuple[FinishedRun, ...], copy: Path) -> None:
    for run in read_runs(copy).runs:
        run.file.write_bytes(run.file.read_bytes()[:-30])
        write_record(run.file.parent, run.record)
    merged = merge_directory(copy)
    assert merged.errors == ()
    assert merged.frame.height == merge(runs).frame.height - len(runs)


@pytest.mark.parametrize("damage", ["changed", "cut off", "gone", "line ends"])
def test_of_a_file_that_is_not_what_its_run_wrote_nothing_is_used(
    runs: tuple[FinishedRun, ...], copy: Path, damage: str
) -> None:
    file = read_runs(copy).runs[0].file
    text = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        damaged = {"changed": text.replace(b'"rep":0', b'"rep":1', 1), "cut off": text[:-1]}
        file.write_bytes(damaged.get(damage, text.replace(b"\n", b"\r\n")))
    merged = merge_directory(copy)
    (error,) = map(str, merged.errors)
    assert error.startswith(f"runs/{file.parent.name}/samples.jsonl isn't what the run wrote")
    assert merged.frame.equals(merge(runs[1:]).frame)


def test_samples_that_a_record_does_not_name_are_not_used(copy: Path) -> None:
    directory = read_runs(copy).runs[0].file.parent
    (directory / "samples.jsonl").unlink()
    write_record(directory, read_runs(copy).runs[0].record)
    assert merge_directory(copy).errors == ()
    (directory / "samples.jsonl").write_text("{}\n")
    assert len(merge_directory(copy).errors) == 1


@pytest.mark.parametrize("name", ["a [b] *?", "~", "x=1", "file:", "é %20", "\udcff"])
def test_a_campaign_is_merged_whatever_its_directory_is_called(
    campaign: Campaign, runs: tuple[FinishedRun, ...], tmp_path: Path, name: str
) -> None:
    shutil.copytree(campaign.directory, tmp_path / name)
    assert parquet(merge_directory(tmp_path / name / "runs").frame) == parquet(merge(runs).frame)


def test_samples_of_failed_runs_and_workloads_are_kept_and_marked(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=2))
    writer, rows = Writer(campaign), list(campaign.rows())
    broken = campaign.plan.workloads[2].params_id
    writer.write(*rows[0], failed={broken: "out of memory"})
    writer.write(*rows[1], status="failed", reason="scheduler died")
    writer.write(*rows[2], status="skipped", reason="known issue")
    writer.write(*rows[3], record=False)
    frame = merge(read_runs(campaign.runs_dir).runs).frame
    marks = frame.group_by("order", "workload", "run_status", "workload_status").len().sort("order", "workload")
    assert marks.filter(order=0, workload="merge").row(0)[2:] == ("ok", "failed", 3)
    assert marks.filter(order=0, workload="tasks").row(0)[2:] == ("ok", "ok", 7)
    assert marks.filter(order=1, workload="merge").row(0)[2:] == ("failed", "ok", 7)
    assert frame["run"].n_unique() == 2


def test_a_damaged_record_does_not_stop_the_others(campaign: Campaign, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(campaign.directory, copy)
    first, second, *_ = sorted((copy / "runs").iterdir())
    (first / "run.json").write_text("{")
    shutil.copy(second / "run.json", first.with_name("feedc0ffee00-1").mkdir() or first.with_name("feedc0ffee00-1"))
    read = read_runs(copy / "runs")
    assert len(read.runs) == 5
    assert [first.name in str(read.errors[0]), "feedc0ffee00-1" in str(read.errors[1])] == [True, True]


def test_costs_are_columns_where_they_were_read_and_null_elsewhere(copy: Path) -> None:
    run = read_runs(copy).runs[0]
    costs = '"answer":"ok","cpu_s":0.5,"energy_j":3,"throttle":4'
    run.file.write_text(run.file.read_text().replace('"answer":"ok"', costs))
    write_record(run.file.parent, run.record)
    merged = merge_directory(copy)
    assert merged.errors == ()
    read = merged.frame.select("cpu_s", "energy_j", "throttle").unique().sort("cpu_s").rows()
    assert read == [(None, None, None), (0.5, 3.0, 4)]


@pytest.mark.parametrize("together", [1, 2, samples.TOGETHER])
def test_a_file_with_values_that_no_column_holds_is_named_and_not_used(
    runs: tuple[FinishedRun, ...], copy: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(samples, "TOGETHER", together)
    run = read_runs(copy).runs[0]
    run.file.write_text(run.file.read_text().replace('"rep":0', '"rep":1e30', 1))
    write_record(run.file.parent, run.record)
    merged = merge_directory(copy)
    assert ["holds values that can't be samples" in str(error) for error in merged.errors] == [True]
    assert merged.frame.equals(merge(runs[1:]).frame)
