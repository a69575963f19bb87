"""Files that aren't what their runs wrote are one line each; what is whole is clean; nothing is ever written."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpubench.results.fsck import check
from tests.conftest import Run
from tests.in_process import invoked as run

Damage = Callable[[Path], object]


def found(campaign: Path) -> list[str]:
    return [str(Path(one.path).relative_to(campaign)) for one in check(campaign)]


def first_run(campaign: Path) -> Path:
    return sorted((campaign / "runs").iterdir())[0]


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_finished_campaign_and_an_import_are_clean_and_nothing_is_written(
    campaign: Path, import_copy: Path, gpubench: Run
) -> None:
    before = {path: path.stat().st_mtime_ns for path in campaign.parent.rglob("*")}
    done = gpubench("results", "fsck", campaign, import_copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{campaign}: no findings" in done.stdout
    after = {path: path.stat().st_mtime_ns for path in campaign.parent.rglob("*") if "state" not in path.parts}
    assert after == before


def test_the_steps_of_a_search_are_looked_at_too(campaign: Path, tmp_path: Path, gpubench: Run) -> None:
    search = tmp_path / "outputs" / "local-bisect-quick-20260101T000000Z"
    search.mkdir(parents=True)
    (search / "bisect.json").write_text("{}")
    step = shutil.move(campaign, search / "step-00")
    path = first_run(Path(step)) / "samples.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")
    done = gpubench("results", "fsck", tmp_path / "outputs")
    assert (done.returncode, f"{step}: 1 finding" in done.stdout) == (3, True), done.stdout


def swap_figure(campaign: Path) -> None:
    path = first_run(campaign) / "samples.jsonl"
    lines = path.read_text().splitlines()
    lines[-1] = json.dumps(json.loads(lines[-1]) | {"wall_s": 1e-6}, separators=(",", ":"))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", ["samples.jsonl", "links.jsonl", "provenance.json", "logs.zip"])
def test_each_file_of_a_run_is_missed_and_its_change_is_seen(campaign: Path, name: str) -> None:
    path = first_run(campaign) / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert found(campaign) == [f"runs/{path.parent.name}/{name}"]
    path.unlink()
    assert found(campaign) == [f"runs/{path.parent.name}/{name}"]


def edit_hash(campaign: Path, digest: str | None) -> None:
    """Another hash of the samples in the first run's record, or none."""
    record = first_run(campaign) / "run.json"
    files = json.loads(record.read_text())["files"] | {"samples.jsonl": digest}
    edit(record, files={name: of_file for name, of_file in files.items() if of_file is not None})


def damages() -> Iterator[tuple[str, Damage, str]]:
    """Name, what is done to the campaign, and a part of the path that is named."""
    yield "image", lambda c: edit(first_run(c) / "run.json", image="0123"), "run.json"
    yield "node half of a run", lambda c: edit(first_run(c) / "run.json", node_half="ab" * 32), "run.json"
    yield "record cut", lambda c: (first_run(c) / "run.json").write_text('{"sch'), "run.json"
    yield "schema", lambda c: edit(first_run(c) / "run.json", schema="gpubench/run/99"), "run.json"
    yield "file that no record names", lambda c: (first_run(c) / "notes.txt").write_text("mine"), "notes.txt"
    yield "samples that no record names", lambda c: edit_hash(c, None), "samples.jsonl"
    yield "empty hash", lambda c: edit_hash(c, ""), "samples.jsonl"
    yield "strange run", lambda c: (c / "runs/feedc0ffee00-1").mkdir(), "feedc0ffee00-1"
    yield "manifest", lambda c: edit(next((c / "manifests").iterdir()), kind="docker"), "manifests/"
    yield "manifest no text", lambda c: edit(next((c / "manifests").iterdir()), kind="\ud800"), "manifests/"
    yield "manifest gone", lambda c: next((c / "manifests").iterdir()).unlink(), "manifests/"
    yield "addition cut", lambda c: (c / "plan.d/001.json").write_text("{"), "plan.json"


@pytest.mark.parametrize(("damage", "part"), [pytest.param(*rest, id=name) for name, *rest in damages()])
def test_damage_is_one_line_that_names_the_file(campaign: Path, damage: Damage, part: str) -> None:
    damage(campaign)
    (path,) = found(campaign)
    assert part in path


def end_without_record(campaign: Path) -> None:
    """As a run that was killed while it wrote its record."""
    unfinished = next(campaign.glob("runs/*-1"))
    (unfinished / "run.json").unlink()
    (unfinished / ".run.json.ab_1c2d3").write_text("")


def make_table(campaign: Path) -> None:
    """As a workload that reads a table makes it."""
    (campaign / "data" / "pdsh-0").mkdir(parents=True)
    (campaign / "data" / "pdsh-0" / "part.parquet").write_bytes(b"PAR1")


@pytest.mark.parametrize("change", [end_without_record, make_table])
def test_what_belongs_there_is_no_finding_nor_is_another_place(campaign: Path, tmp_path: Path, change: Damage) -> None:
    change(campaign)
    assert found(campaign) == []
    shutil.move(campaign, tmp_path / "elsewhere")
    assert check(tmp_path / "elsewhere") == []


def test_an_edited_plan_is_told_by_its_own_ids(campaign: Path) -> None:
    path = campaign / "plan.json"
    path.write_text(path.read_text().replace('"count": 40', '"count": 41'))
    assert "plan.json" in found(campaign)
    plain = json.loads((campaign / "plan.d/001.json").read_text())
    runs = plain["jobs"][0]["blocks"][0]["runs"]
    runs[0]["variant"], runs[1]["variant"] = runs[1]["variant"], runs[0]["variant"]
    (campaign / "plan.d/001.json").write_text(json.dumps(plain))
    assert "plan.d/001.json" in found(campaign)


def test_a_workload_that_the_plan_lost_is_no_bug_but_findings(campaign: Path) -> None:
    plan = json.loads((campaign / "plan.json").read_text())
    edit(campaign / "plan.json", workloads=plan["workloads"][:1])
    assert sorted(Path(one).name for one in found(campaign)) == ["plan.json", *["run.json"] * 4]


def test_another_node_half_than_that_of_all_runs_is_one_finding_and_no_run_is_blamed(campaign: Path) -> None:
    with zipfile.ZipFile(campaign / "node.pyz", "a") as archive:
        archive.writestr("gpubench/node/main.py", "def main(): ...")
    assert [Path(one).name for one in found(campaign)] == ["node.pyz"]
    (campaign / "node.pyz").unlink()
    assert [str(finding) for finding in check(campaign)] == [
        f"{campaign}/node.pyz: it is gone; restore it from a copy of the campaign"
    ]


def test_a_campaign_that_lost_its_plan_is_a_finding_of_its_folder_and_its_own(campaign: Path, gpubench: Run) -> None:
    broken = campaign.parent / "broken"
    shutil.copytree(campaign, broken)
    (broken / "plan.json").unlink()
    (campaign.parent / "others" / "runs").mkdir(parents=True)
    done = gpubench("results", "fsck", campaign.parent)
    assert "others" not in done.stdout
    assert (done.returncode, f"{campaign}: no findings" in done.stdout) == (3, True)
    lost = f"{broken}/plan.json: it is gone, and its results are here; restore it"
    assert lost in done.stdout
    itself = gpubench("results", "fsck", broken, code=3)
    assert lost in itself.stdout


def test_an_import_whose_table_or_note_was_edited(import_copy: Path) -> None:
    assert check(import_copy) == []
    table, note = import_copy / "results.parquet", import_copy / "import.json"
    whole = pl.read_parquet(table)
    whole.with_columns(pl.col("wall_s") * 2).write_parquet(table)
    (one,) = check(import_copy)
    assert "somebody edited it" in str(one)
    table.write_bytes(b"PAR1")
    assert len(check(import_copy)) == 1
    note.write_text("{")
    assert len(check(import_copy)) == 1


@pytest.mark.parametrize("name", ["results.parquet", "import.json"])
def test_of_an_import_the_file_is_named_that_is_damaged(import_copy: Path, name: str) -> None:
    (import_copy / name).write_bytes(b"x" + (import_copy / name).read_bytes()[:-9])
    (finding,) = check(import_copy)
    assert (finding.path, finding.what) == (str(import_copy / name), "is damaged, or gone")


def test_a_directory_of_many_is_searched_and_json_has_the_same_lines(campaign: Path, import_copy: Path) -> None:
    (first_run(campaign) / "logs.zip").unlink()
    done = run("results", "fsck", campaign.parent, "--json")
    checked = json.loads(done.stdout)["checked"]
    assert done.exit_code == 3
    assert [(Path(one["path"]), len(one["findings"])) for one in checked] == [(campaign, 1), (import_copy, 0)]
    assert json.loads(run("results", "fsck", campaign / "runs", "--json").stdout)["checked"] == checked[:1]
    (campaign.parent / "empty").mkdir()
    for nothing in ("empty", "typo"):
        error = str(run("results", "fsck", campaign.parent / nothing).exception)
        assert f"{nothing} is no campaign and no import, and holds none" in error


PLANNED = [
    *("run", "attempt", "campaign", "site", "job", "block", "order", "variant", "nodes", "workers_per_node"),
    *("threads_per_worker", "protocol", "device", "image", "ucx_version"),
]


@pytest.mark.parametrize("field", PLANNED)
def test_whatever_the_plan_says_of_a_run_contradicts_an_edited_record(campaign: Path, field: str) -> None:
    path = first_run(campaign) / "run.json"
    value = json.loads(path.read_text())[field]
    edit(path, **{field: value + 1 if isinstance(value, int) else f"{value}x"})
    (one,) = check(campaign)
    assert Path(one.path).name == "run.json"
    assert f"{field} is " in one.what
    assert "planned is " in one.what


@pytest.mark.parametrize("field", ["workload", "backend", "params", "params_id", "reps", "warmup"])
def test_whatever_the_plan_says_of_a_workload_contradicts_an_edited_record(campaign: Path, field: str) -> None:
    path = first_run(campaign) / "run.json"
    workloads = json.loads(path.read_text())["workloads"]
    first = workloads[0]
    edited = {"params": {"count": 41}, "reps": first["reps"] + 1, "warmup": first["warmup"] + 1}
    first[field] = edited.get(field, f"{first[field]}x")
    edit(path, workloads=workloads)
    (one,) = check(campaign)
    assert (Path(one.path).name, "workloads is " in one.what, "planned is " in one.what) == ("run.json", True, True)


def test_a_file_that_was_edited_together_with_its_hash_is_not_detected(campaign: Path) -> None:
    """As the manual says: hashes are no signatures."""
    run_directory = first_run(campaign)
    swap_figure(campaign)
    files = json.loads((run_directory / "run.json").read_text())["files"]
    digest = hashlib.sha256((run_directory / "samples.jsonl").read_bytes()).hexdigest()
    edit(run_directory / "run.json", files=files | {"samples.jsonl": digest})
    assert found(campaign) == []
