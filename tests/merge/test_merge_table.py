import io
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from campaign_builder import Writer, begin, finish, make_plan

from gpubench.errors import DataError
from gpubench.node.writer.run_dir import finish as write_record
from gpubench.results.merge import samples
from gpubench.results.merge.table import COLUMNS, RESULTS, parquet, sample_table
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_record


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    campaign = begin(tmp_path_factory.mktemp("c") / "campaign", make_plan(blocks=3))
    finish(campaign)
    return campaign


@pytest.fixture
def copy(campaign: Campaign, tmp_path: Path) -> Campaign:
    return Campaign.open(shutil.copytree(campaign.directory, tmp_path / "copy"))


def table(campaign: Campaign) -> pl.DataFrame:
    return sample_table(account(campaign).outcomes)


def first_samples(campaign: Campaign) -> Path:
    """``samples.jsonl`` of the first run of the table."""
    run = table(campaign)["run"][0]
    return campaign.runs_dir / f"{run}-1" / "samples.jsonl"


def record_again(samples_file: Path) -> None:
    """As if the run had written the files that are there now."""
    record = read_record(samples_file.parent)
    assert record is not None
    write_record(samples_file.parent, record)


def test_exactly_the_columns_of_the_design(campaign: Campaign) -> None:
    frame = table(campaign)
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
    empty = sample_table([])
    assert (dict(empty.schema), empty.height) == (COLUMNS, 0)


def test_parquet_reads_back_and_names_its_schema(campaign: Campaign) -> None:
    frame = table(campaign)
    data = parquet(frame)
    assert pl.read_parquet(io.BytesIO(data)).equals(frame)
    assert pl.read_parquet_metadata(io.BytesIO(data))["schema"] == RESULTS


def test_what_was_cut_off_when_a_run_was_killed_is_no_sample(campaign: Campaign, copy: Campaign) -> None:
    files = sorted(copy.runs_dir.glob("*/samples.jsonl"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-30])
        record_again(file)
    assert table(copy).height == table(campaign).height - len(files)


@pytest.mark.parametrize("damage", ["changed", "cut off", "gone", "line ends"])
def test_a_run_whose_samples_are_not_what_it_wrote_is_lost(campaign: Campaign, copy: Campaign, damage: str) -> None:
    file = first_samples(copy)
    text = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        damaged = {"changed": text.replace(b'"rep":0', b'"rep":1', 1), "cut off": text[:-1]}
        file.write_bytes(damaged.get(damage, text.replace(b"\n", b"\r\n")))
    lost = [outcome for outcome in account(copy).outcomes if outcome.status == "lost"]
    assert [outcome.run.run for outcome in lost] == [file.parent.name.removesuffix("-1")]
    what = "is gone, or empty" if damage == "gone" else "isn't what the run wrote"
    assert lost[0].reason.startswith(f"runs/{file.parent.name}/samples.jsonl {what}")
    assert table(copy).equals(table(campaign).filter(pl.col("run") != lost[0].run.run))


def test_a_run_with_samples_that_its_record_does_not_name_is_lost(copy: Campaign) -> None:
    file = first_samples(copy)
    file.unlink()
    record_again(file)
    assert {outcome.status for outcome in account(copy).outcomes} == {"ok"}
    file.write_text("{}\n")
    assert account(copy).counts() == {"ok": 5, "lost": 1}


@pytest.mark.parametrize("name", ["a [b] *?", "~", "x=1", "file:", "é %20", "\udcff"])
def test_a_campaign_is_merged_whatever_its_directory_is_called(campaign: Campaign, tmp_path: Path, name: str) -> None:
    copy = Campaign.open(shutil.copytree(campaign.directory, tmp_path / name))
    assert parquet(table(copy)) == parquet(table(campaign))


def test_samples_of_failed_runs_and_workloads_are_kept_and_marked(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=2))
    writer, rows = Writer(campaign), list(campaign.rows())
    broken = campaign.plan.workloads[2].params_id
    writer.write(*rows[0], failed={broken: "out of memory"})
    writer.write(*rows[1], status="failed", reason="scheduler died")
    writer.write(*rows[2], status="skipped", reason="known issue")
    writer.write(*rows[3], record=False)
    frame = table(campaign)
    marks = frame.group_by("order", "workload", "run_status", "workload_status").len().sort("order", "workload")
    assert marks.filter(order=0, workload="merge").row(0)[2:] == ("ok", "failed", 3)
    assert marks.filter(order=0, workload="tasks").row(0)[2:] == ("ok", "ok", 7)
    assert marks.filter(order=1, workload="merge").row(0)[2:] == ("failed", "ok", 7)
    assert frame["run"].n_unique() == 2


def test_costs_are_columns_where_they_were_read_and_null_elsewhere(copy: Campaign) -> None:
    file = first_samples(copy)
    costs = '"answer":"ok","cpu_s":0.5,"energy_j":3,"throttle":4'
    file.write_text(file.read_text().replace('"answer":"ok"', costs))
    record_again(file)
    read = table(copy).select("cpu_s", "energy_j", "throttle").unique().sort("cpu_s").rows()
    assert read == [(None, None, None), (0.5, 3.0, 4)]


@pytest.mark.parametrize("together", [1, 2, samples.TOGETHER])
def test_a_file_with_values_that_no_column_holds_is_named(
    copy: Campaign, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(samples, "TOGETHER", together)
    file = first_samples(copy)
    file.write_text(file.read_text().replace('"rep":0', '"rep":1e30', 1))
    record_again(file)
    with pytest.raises(DataError, match=f"{file.parent.name}/samples.jsonl: its values aren't those of samples"):
        table(copy)
