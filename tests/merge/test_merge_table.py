import dataclasses
import io
import itertools
import json
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from campaign_builder import Writer, begin, finish, make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.results.merge import samples
from gpubench.results.merge.samples import FinishedRun
from gpubench.results.merge.table import COLUMNS, RESULTS, Merged, merge_directory, parquet
from gpubench.store.campaign import Campaign
from tests.merging import merge, read_runs

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    campaign = begin(tmp_path_factory.mktemp("c") / "campaign", make_plan(blocks=3))
    finish(campaign)
    return campaign


@pytest.fixture(scope="module")
def runs(campaign: Campaign) -> tuple[FinishedRun, ...]:
    return read_runs(campaign.runs_dir).runs


def text_of(run: FinishedRun) -> str:
    return run.file.read_text(errors="replace")


def damaged(run: FinishedRun, text: str) -> FinishedRun:
    """The run with this text as its samples, in a directory of its own."""
    file = run.file.parents[3] / f"damaged {next(NUMBERS)}" / "runs" / run.file.parent.name / run.file.name
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return FinishedRun(run.record, file)


def merge_at_once(runs: Iterable[FinishedRun]) -> Merged:
    """As ``merge``, where no file is read line by line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(FinishedRun, "parse")
        return merge(runs)


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
    data = parquet(merge(runs))
    assert pl.read_parquet(io.BytesIO(data)).equals(frame)
    assert pl.read_parquet_metadata(io.BytesIO(data))["schema"] == RESULTS


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_order_copies_and_remerging_change_nothing(runs: tuple[FinishedRun, ...], data: st.DataObject) -> None:
    again = data.draw(st.permutations(list(runs) + data.draw(st.lists(st.sampled_from(runs), max_size=4))))
    shuffled = [_shuffle_lines(run, data.draw(st.integers(0, 99))) for run in again]
    assert parquet(merge(shuffled)) == parquet(merge(runs))


def _shuffle_lines(run: FinishedRun, seed: int) -> FinishedRun:
    lines = text_of(run).splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    return damaged(run, "".join(lines))


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(min_value=0, max_value=2000))
def test_a_cut_off_file_loses_at_most_its_last_line(runs: tuple[FinishedRun, ...], cut: int) -> None:
    text = text_of(runs[0])[:cut]
    merged = merge([damaged(runs[0], text)])
    assert merged.errors == ()
    whole = text.count("\n")
    assert merged.frame.height in (whole, whole + 1)
    assert bool(merged.warnings) == (bool(text.split("\n")[-1]) and merged.frame.height == whole)


def test_a_torn_line_in_the_middle_is_an_error_and_the_rest_is_merged(runs: tuple[FinishedRun, ...]) -> None:
    lines = text_of(runs[0]).splitlines()
    lines[4] = lines[4][:37]
    merged = merge([damaged(runs[0], "\n".join(lines) + "\n"), *runs[1:]])
    (error,) = merged.errors
    assert f"runs/{runs[0].record.run}-1/samples.jsonl, line 5" in str(error)
    assert error.exit_code == 3
    assert merged.frame.height == merge(runs).frame.height - 1


@pytest.mark.parametrize(
    "change",
    [
        {"wall_s": float("nan")},
        {"wall_s": -1.0},
        {"wall_s": 0},
        {"wall_s": "1.0"},
        {"wall_s": True},
        {"wall_s": 1e308},
        {"workload": "another"},
        {"backend": "another"},
        {"started_at": "0001-01-01T00:00:00.000000+00:00"},
        {"started_at": "9999-12-31T00:00:00.000000+00:00"},
        {"started_at": "1999-12-31T23:59:59.999999+00:00"},
        {"started_at": "2100-01-01T00:00:00.000000+00:00"},
        {"wall_s": 1e8},
        {"rep": -1},
        {"bytes": -1},
        {"rep": True},
        {"rep": 1.5},
        {"rep": 2**31},
        {"bytes": 2**63},
        {"throttle": 2**63},
        {"throttle": -1},
        {"cpu_s": 1e15},
        {"energy_j": -1.0},
        {"warmup": 0},
        {"answer": "perhaps"},
        {"started_at": "yesterday"},
        {"started_at": None},
        {"params_id": "unknown"},
        {"surprise": 1},
    ],
)
def test_an_impossible_sample_is_an_error(runs: tuple[FinishedRun, ...], change: dict[str, object]) -> None:
    lines = text_of(runs[0]).splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | change)
    merged = merge([damaged(runs[0], "\n".join(lines) + "\n")])
    assert [str(error).split(":")[0] for error in merged.errors] == [f"{runs[0].source}, line 3"]
    assert merged.frame.height == len(lines) - 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rep": -1}, f"rep = -1 is no count from 0 to below {2**31}"),
        ({"bytes": 2**63}, f"bytes = {2**63} is no whole number from 0 to below {2**63}"),
        ({"warmup": 1}, "warmup = 1 is no true or false"),
        ({"answer": "yes"}, "answer = yes is none of ok, wrong, unchecked"),
    ],
)
def test_values_that_are_none_are_refused_with_what_would_be(
    runs: tuple[FinishedRun, ...], change: dict[str, object], why: str
) -> None:
    line = json.dumps(json.loads(text_of(runs[0]).splitlines()[0]) | change)
    (error,) = merge([damaged(runs[0], f"{line}\n")]).errors
    assert str(error).endswith(why)


@pytest.mark.parametrize(
    "change",
    [
        {"wall_s": 99_999_999.0},
        {"wall_s": 1e-9},
        {"rep": 2**31 - 1},
        {"bytes": 0},
        {"started_at": "2000-01-01T00:00:00.000000+00:00"},
        {"started_at": "2099-12-31T23:59:59.999999+00:00"},
    ],
)
def test_a_sample_at_the_edge_of_what_is_possible_is_kept_and_looked_at_with_all_others(
    runs: tuple[FinishedRun, ...], change: dict[str, object]
) -> None:
    lines = text_of(runs[0]).splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | change, separators=(",", ":"))
    edge = damaged(runs[0], "\n".join(lines) + "\n")
    together, one_by_one = merge_at_once([edge]), merge([damaged(edge, text_of(edge) + "\n")])
    assert together.errors == one_by_one.errors == ()
    assert together.frame.height == len(lines)
    assert parquet(together.frame) == parquet(one_by_one.frame)


# Two levels and short texts reach every kind of value that a line may hold.
WORD = st.text(max_size=20)
LEAF = st.none() | st.booleans() | st.integers() | st.floats() | WORD | st.just(10**400)
FLAT = LEAF | st.lists(LEAF, max_size=2) | st.dictionaries(WORD, LEAF, max_size=2)
ANY_JSON = FLAT | st.lists(FLAT, max_size=2) | st.dictionaries(WORD, FLAT, max_size=2)


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, 20), value=ANY_JSON)
def test_no_line_whatever_stands_in_it_stops_the_merge(
    runs: tuple[FinishedRun, ...], place: int, value: object
) -> None:
    lines = text_of(runs[0]).splitlines()
    sample = json.loads(lines[3])
    lines[3] = json.dumps(sample | {sorted(sample)[place % len(sample)]: value})
    merged = merge([damaged(runs[0], "\n".join(lines) + "\n")])
    assert merged.frame.height + len(merged.errors) >= len(lines) - 1
    assert all(f"{runs[0].source}, line 4" in str(error) or "two copies" in str(error) for error in merged.errors)


def test_copies_that_contradict_each_other_are_used_neither(runs: tuple[FinishedRun, ...]) -> None:
    lines = text_of(runs[0]).splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {"wall_s": 99.0})
    merged = merge([*runs, damaged(runs[0], "\n".join(lines) + "\n")])
    (error,) = merged.errors
    assert "two copies of a sample of message differ" in str(error)
    assert merged.frame.height == merge(runs).frame.height - 1


@pytest.mark.parametrize(("wall_s", "lost", "errors"), [(None, 0, 0), (99.0, 1, 1)])
def test_a_sample_that_stands_twice_in_its_file_is_one_or_none(
    wall_s: float | None, lost: int, errors: int, runs: tuple[FinishedRun, ...]
) -> None:
    again = json.loads(text_of(runs[0]).splitlines()[1])
    copy = json.dumps(again if wall_s is None else again | {"wall_s": wall_s}, separators=(",", ":"))
    run = damaged(runs[0], f"{text_of(runs[0])}{copy}\n")
    merged = merge_at_once([run, *runs[1:]])  # nothing is odd about the lines
    assert len(merged.errors) == errors
    assert merged.frame.height == merge(runs).frame.height - lost


@pytest.mark.parametrize("name", ["a [b] *?", "~", "x=1", "file:", "é %20"])
def test_a_campaign_is_merged_whatever_its_directory_is_called(
    campaign: Campaign, runs: tuple[FinishedRun, ...], tmp_path: Path, name: str
) -> None:
    shutil.copytree(campaign.directory, tmp_path / name)
    assert parquet(merge_at_once(read_runs(tmp_path / name / "runs").runs)) == parquet(merge(runs))


def test_a_directory_whose_name_is_not_utf_8_is_merged_line_by_line(
    campaign: Campaign, runs: tuple[FinishedRun, ...], tmp_path: Path
) -> None:
    shutil.copytree(campaign.directory, tmp_path / "\udcff")
    assert parquet(merge(read_runs(tmp_path / "\udcff" / "runs").runs)) == parquet(merge(runs))


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


def test_reads_a_copy_and_a_campaign_in_progress(campaign: Campaign, tmp_path: Path) -> None:
    copy = tmp_path / "brought home"
    shutil.copytree(campaign.directory, copy)
    whole = parquet(merge(read_runs(campaign.runs_dir).runs).frame)
    assert parquet(merge(read_runs(copy / "runs").runs).frame) == whole
    unfinished = next((copy / "runs").iterdir())
    (unfinished / "run.json").unlink()
    (unfinished / "samples.jsonl").write_text('{"workload": "mess')
    read = read_runs(copy / "runs")
    assert (len(read.runs), read.errors) == (5, ())
    assert merge(read.runs).errors == ()
    assert read_runs(tmp_path / "nothing here").runs == ()


def test_a_damaged_record_does_not_stop_the_others(campaign: Campaign, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(campaign.directory, copy)
    first, second, *_ = sorted((copy / "runs").iterdir())
    (first / "run.json").write_text("{")
    shutil.copy(second / "run.json", first.with_name("feedc0ffee00-1").mkdir() or first.with_name("feedc0ffee00-1"))
    read = read_runs(copy / "runs")
    assert len(read.runs) == 5
    assert [first.name in str(read.errors[0]), "feedc0ffee00-1" in str(read.errors[1])] == [True, True]


@pytest.mark.parametrize("nodes", [2**40, -1, "two"])
def test_a_record_with_an_impossible_number_is_named_and_the_others_are_merged(
    campaign: Campaign, tmp_path: Path, nodes: object
) -> None:
    shutil.copytree(campaign.directory, tmp_path / "copy")
    record = sorted(tmp_path.glob("copy/runs/*/run.json"))[0]
    record.write_text(json.dumps(json.loads(record.read_text()) | {"nodes": nodes}))
    read = read_runs(tmp_path / "copy" / "runs")
    assert [str(error).startswith(f"{record}: nodes = {nodes!r} is") for error in read.errors] == [True]
    assert merge(read.runs).frame.height > 0


def test_many_runs_at_once_and_line_by_line_are_the_same_table(runs: tuple[FinishedRun, ...]) -> None:
    together = merge_at_once(runs)  # lines as the node half writes them aren't looked at one by one
    for number, run in enumerate(runs):
        # A blank line is no reason to complain, and reason enough to look at every line.
        blank = damaged(run, text_of(run).replace("\n", "\n\n", 1))
        one_by_one = merge([*runs[:number], blank, *runs[number + 1 :]])
        assert (one_by_one.warnings, one_by_one.errors) == ((), ())
        assert parquet(one_by_one.frame) == parquet(together.frame)


def test_costs_are_columns_where_they_were_read_and_null_elsewhere(runs: tuple[FinishedRun, ...]) -> None:
    costs = '"answer":"ok","cpu_s":0.5,"energy_j":3,"throttle":4'
    some = [damaged(runs[0], text_of(runs[0]).replace('"answer":"ok"', costs)), *runs[1:]]
    together = merge_at_once(some)
    blank = damaged(some[0], text_of(some[0]).replace("\n", "\n\n", 1))
    assert parquet(merge([blank, *runs[1:]]).frame) == parquet(together.frame)
    read = together.frame.select("cpu_s", "energy_j", "throttle").unique().sort("cpu_s").rows()
    assert read == [(None, None, None), (0.5, 3.0, 4)]
    assert together.errors == ()


@pytest.mark.parametrize(
    "change",
    [
        ('"rep":0', '"rep":0.5'),
        ('"rep":0', '"rep":-1'),
        ('"rep":0', '"rep":true'),
        ('"rep":0', '"rep":null'),
        ('"rep":0', '"rep":0,"rap":0'),
        ('"rep":0,', ""),
        ('"rep":0', '"rep":0,"rep":0'),
        ('"wall_s":', '"wall_s":-'),
        ('"wall_s":', '"wall_s":NaN,"x":'),
        ('"bytes":', '"bytes":-'),
        ('"answer":"ok"', '"answer":"fine"'),
        ('"answer":"ok"', '"answer":"ok","cpu_s":-1'),
        ('"answer":"ok"', '"answer":"ok","energy_j":"1"'),
        ('"answer":"ok"', '"answer":"ok","throttle":0.5'),
        ('"answer":"ok"', '"answer":"ok","cpu_s":null'),
        ('"params_id":"', '"params_id":"0'),
        ('"started_at":"', '"started_at":"x'),
        ('"started_at":"20', '"started_at":"10'),
        ('"workload":"', '"workload":"x'),
        ('"backend":"', '"backend":"x'),
        ('"started_at":"', '"started_at":"\udcff'),  # no UTF-8
        ("{", ""),
        ("}", "}}"),
    ],
)
def test_an_odd_line_among_a_thousand_is_found_and_only_it_is_left_out(
    runs: tuple[FinishedRun, ...], change: tuple[str, str]
) -> None:
    odd = damaged(runs[1], text_of(runs[1]).replace(*change, 1))
    assert text_of(odd) != text_of(runs[1])
    merged = merge([runs[0], odd, *runs[2:]])
    is_harmless = change[1] == '"rep":0,"rep":0'  # JSON's last value counts
    assert len(merged.errors) == (0 if is_harmless else 1)
    assert all(f"{odd.source}, line 1" in str(error) for error in merged.errors)
    assert merged.frame.height == merge(runs).frame.height - len(merged.errors)


@pytest.mark.parametrize("name", ["~", "file:", "a*b"])
def test_paths_that_polars_would_change_are_read_as_they_are(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shutil.copytree(campaign.directory, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    expected = merge_directory(campaign.directory / "runs").frame
    assert merge_directory(Path(name) / "runs").frame.equals(expected)


def test_samples_that_vanish_while_they_are_read_count_as_none(
    runs: tuple[FinishedRun, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = [damaged(one, text_of(one)) for one in runs]
    scanned = samples._scanned

    def after_a_file_has_gone(files: list[str]) -> pl.LazyFrame:
        copies[0].file.unlink(missing_ok=True)
        return scanned(files)

    monkeypatch.setattr(samples, "_scanned", after_a_file_has_gone)
    assert merge(copies).frame.equals(merge(runs[1:]).frame)


def test_directories_are_merged_to_the_same_table_with_the_same_errors(campaign: Campaign, tmp_path: Path) -> None:
    shutil.copytree(campaign.directory, tmp_path / "copy")
    first, second, *_ = sorted((tmp_path / "copy" / "runs").iterdir())
    (first / "run.json").write_text("{")
    samples = second / "samples.jsonl"
    samples.write_text(samples.read_text().replace('"rep":0', '"rep":-1', 1))
    read = read_runs(tmp_path / "copy" / "runs")
    whole = merge(read.runs)
    merged = merge_directory(tmp_path / "copy" / "runs")
    assert merged.frame.equals(whole.frame)
    assert parquet(merged) == parquet(whole) == parquet(whole.frame)
    assert [str(one) for one in merged.errors] == [str(one) for one in (*read.errors, *whole.errors)]


def test_a_workload_that_stands_twice_in_a_record_keeps_its_samples_line_by_line(runs: tuple[FinishedRun, ...]) -> None:
    run = runs[0]
    twin = dataclasses.replace(run.record.workloads[0], params_id="0" * 12, status="failed")
    record = dataclasses.replace(run.record, workloads=[*run.record.workloads, twin])
    more = text_of(run).splitlines()[-1]
    line = json.loads(more) | {"params_id": twin.params_id, "workload": twin.workload, "rep": 99}
    merged = merge([damaged(dataclasses.replace(run, record=record), f"{text_of(run)}{json.dumps(line)}\n"), *runs[1:]])
    assert (merged.errors, merged.warnings) == ((), ())
    assert merged.frame.height == merge(runs).frame.height + 1
    assert merged.frame.filter(rep=99).select("workload", "workload_status").row(0) == (twin.workload, "failed")


def test_lines_that_contradict_their_runs_record_are_found_among_many(runs: tuple[FinishedRun, ...]) -> None:
    other = next(one.workload for one in runs[1].record.workloads if one.workload != "message")
    odd = damaged(runs[1], text_of(runs[1]).replace('"workload":"message"', f'"workload":"{other}"', 1))
    merged = merge([runs[0], odd, *runs[2:]])
    assert [f"{odd.source}, line 1" in str(error) for error in merged.errors] == [True]
    assert merged.frame.height == merge(runs).frame.height - 1
