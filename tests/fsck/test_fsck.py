"""Each kind of damage is one line that names the file; what is whole is clean; nothing is ever written."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpubench.fsck import check_campaign, check_import
from gpubench.schedulers import local
from gpubench.store.campaign import Campaign
from tests.conftest import Run
from tests.in_process import invoked as run

Damage = Callable[[Path], object]


def nobody(_campaign: Campaign, _jobs: set[str]) -> set[str]:
    return set()


def found(campaign: Path) -> list[tuple[str, str]]:
    checked = check_campaign(campaign, nobody)
    return [(one.kind, str(Path(one.path).relative_to(campaign))) for one in checked.findings]


def first_run(campaign: Path) -> Path:
    return sorted((campaign / "runs").iterdir())[0]


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def forget_hashes(campaign: Path) -> None:
    for record in campaign.glob("runs/*/run.json"):
        plain = json.loads(record.read_text())
        del plain["files"]
        record.write_text(json.dumps(plain))


def test_a_finished_campaign_and_an_import_are_clean_and_nothing_is_written(
    campaign: Path, imported: Path, gpubench: Run
) -> None:
    before = {path: path.stat().st_mtime_ns for path in campaign.parent.rglob("*")}
    done = gpubench("results", "fsck", campaign, imported)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{campaign}: campaign, no findings" in done.stdout
    assert "unproven" not in done.stdout
    after = {path: path.stat().st_mtime_ns for path in campaign.parent.rglob("*") if "state" not in path.parts}
    assert after == before


def cut_samples(campaign: Path) -> None:
    path = first_run(campaign) / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def swap_figure(campaign: Path) -> None:
    path = first_run(campaign) / "samples.jsonl"
    lines = path.read_text().splitlines()
    lines[-1] = json.dumps(json.loads(lines[-1]) | {"wall_s": 1e-6}, separators=(",", ":"))
    path.write_text("\n".join(lines) + "\n")


def drop_a_line(campaign: Path) -> None:
    path = first_run(campaign) / "samples.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("damage", [cut_samples, swap_figure, drop_a_line])
def test_samples_that_were_changed_in_any_way_contradict_their_hash(campaign: Path, damage: Damage) -> None:
    name = first_run(campaign).name
    damage(campaign)
    assert found(campaign) == [("edited", f"runs/{name}/samples.jsonl")]


@pytest.mark.parametrize(("damage", "kinds"), [(cut_samples, ["torn"]), (drop_a_line, ["torn"]), (swap_figure, [])])
def test_without_hashes_only_what_is_torn_is_seen_and_the_rest_is_called_unproven(
    campaign: Path, damage: Damage, kinds: list[str]
) -> None:
    forget_hashes(campaign)
    damage(campaign)
    checked = check_campaign(campaign, nobody)
    assert [one.kind for one in checked.findings] == kinds
    (note,) = checked.notes
    assert "unproven: 4 runs" in note


@pytest.mark.parametrize(("name", "kind"), [("links.jsonl", "torn"), ("provenance.json", "torn"), ("logs.zip", "torn")])
@pytest.mark.parametrize("hashed", [True, False])
def test_other_files_of_a_run_that_are_cut_off_are_found(campaign: Path, name: str, kind: str, hashed: bool) -> None:
    if not hashed:
        forget_hashes(campaign)
    path = first_run(campaign) / name
    path.write_bytes(path.read_bytes()[:-9])
    assert found(campaign) == [("edited" if hashed else kind, f"runs/{path.parent.name}/{name}")]


def damages() -> Iterator[tuple[str, Damage, str, str]]:
    """Name, what is done to the campaign, kind, and a part of the path that is named."""
    yield "block", lambda c: edit(first_run(c) / "run.json", block=7), "edited", "run.json"
    yield "image", lambda c: edit(first_run(c) / "run.json", image="0123"), "edited", "run.json"
    yield "node half of a run", lambda c: edit(first_run(c) / "run.json", node_half="ab" * 32), "edited", "run.json"
    yield "record cut", lambda c: (first_run(c) / "run.json").write_text('{"sch'), "torn", "run.json"
    yield "schema", lambda c: edit(first_run(c) / "run.json", schema="gpubench/run/99"), "torn", "run.json"
    yield "file gone", lambda c: (first_run(c) / "links.jsonl").unlink(), "torn", "links.jsonl"
    yield "half rename", lambda c: (first_run(c) / ".run.json.ab_1c2d3").write_text(""), "torn", ".run.json.ab_1c2d3"
    yield "tool's half rename", lambda c: (c / ".plan.json.0a1b2c3d.tmp").write_text(""), "torn", ".plan.json."
    yield "strange file", lambda c: (first_run(c) / "notes.txt").write_text("x"), "foreign", "notes.txt"
    yield "strange run", lambda c: (c / "runs/feedc0ffee00-1").mkdir(), "foreign", "feedc0ffee00-1"
    yield "strange job", lambda c: (c / "jobs/j009-n1").mkdir(), "foreign", "j009-n1"
    yield "strange top", lambda c: (c / "old").mkdir(), "foreign", "old"
    yield "link", lambda c: (c / "report.html").symlink_to("/etc/hostname"), "foreign", "report.html"
    yield "manifest", lambda c: edit(next((c / "manifests").iterdir()), kind="docker"), "edited", "manifests/"
    yield "manifest no text", lambda c: edit(next((c / "manifests").iterdir()), kind="\ud800"), "torn", "manifests/"
    yield "manifest gone", lambda c: next((c / "manifests").iterdir()).unlink(), "torn", "manifests/"
    yield "spec", lambda c: edit(next(c.glob("jobs/*/specs/*")), env={}), "edited", "specs/"
    yield "spec gone", lambda c: next(c.glob("jobs/*/specs/*-1-*")).unlink(), "torn", "specs/"
    yield "verdicts", lambda c: (c / "verdicts.json").write_text("{}"), "torn", "verdicts.json"
    yield "table", lambda c: (c / "results.parquet").write_bytes(b"PAR1"), "torn", "results.parquet"
    yield "plan gone", lambda c: (c / "plan.json").unlink(), "torn", "."
    yield "addition cut", lambda c: (c / "plan.d/001.json").write_text("{"), "torn", "."


@pytest.mark.parametrize(("damage", "kind", "part"), [pytest.param(*rest, id=name) for name, *rest in damages()])
def test_damage_is_one_line_that_names_the_file(campaign: Path, damage: Damage, kind: str, part: str) -> None:
    damage(campaign)
    ((seen, path),) = found(campaign)
    assert (seen, part in path) == (kind, True)


def test_an_edited_plan_is_told_by_its_own_ids(campaign: Path) -> None:
    path = campaign / "plan.json"
    path.write_text(path.read_text().replace('"count": 40', '"count": 41'))
    kinds = {(kind, where) for kind, where in found(campaign)}
    assert ("edited", "plan.json") in kinds
    plain = json.loads((campaign / "plan.d/001.json").read_text())
    runs = plain["jobs"][0]["blocks"][0]["runs"]
    runs[0]["variant"], runs[1]["variant"] = runs[1]["variant"], runs[0]["variant"]
    (campaign / "plan.d/001.json").write_text(json.dumps(plain))
    assert ("edited", "plan.d/001.json") in found(campaign)


def test_another_node_half_contradicts_every_run_and_spec(campaign: Path) -> None:
    with zipfile.ZipFile(campaign / "node.pyz", "a") as archive:
        archive.writestr("gpubench/node/main.py", "def main(): ...")
    assert {kind for kind, _ in found(campaign)} == {"edited"}
    assert len(found(campaign)) == 8


def test_a_table_with_a_row_of_no_run_was_edited(campaign: Path) -> None:
    assert run("compare", "--fail-on", "regression", campaign).exit_code == 0
    assert found(campaign) == []
    table = pl.read_parquet(campaign / "results.parquet")
    table.with_columns(pl.col("wall_s") * 0.5).write_parquet(campaign / "results.parquet")
    assert found(campaign) == [("edited", "results.parquet")]
    table.head(3).write_parquet(campaign / "results.parquet")  # older than the last run
    assert found(campaign) == []
    pl.concat([table, table.head(1)]).write_parquet(campaign / "results.parquet")  # a sample that counts twice
    assert found(campaign) == [("edited", "results.parquet")]


def test_a_campaign_that_runs_is_no_finding_and_the_command_says_so(campaign: Path) -> None:
    unfinished = next(campaign.glob("runs/*-1"))
    (unfinished / "run.json").unlink()
    (unfinished / ".run.json.ab_1c2d3").write_text("")
    job = campaign / "jobs" / "j001-n1"
    with subprocess.Popen(["sleep", "60"]) as process:
        for one in (job, job.with_name("j002-n1")):
            local._remember(one, process.pid, None)
        running = run("results", "fsck", campaign)
        process.kill()
    assert (running.exit_code, "may still be running" in running.stdout) == (0, True)
    killed = run("results", "fsck", campaign)
    assert (killed.exit_code, ".run.json.ab_1c2d3: torn" in killed.stdout) == (3, True)
    assert "count as lost" in killed.stdout


def test_an_import_whose_table_or_note_was_edited(imported: Path) -> None:
    assert check_import(imported).findings == ()
    table = pl.read_parquet(imported / "results.parquet")
    table.with_columns(pl.col("wall_s") * 2).write_parquet(imported / "results.parquet")
    (found,) = check_import(imported).findings
    assert (found.kind, Path(found.path).name) == ("edited", "results.parquet")
    note = json.loads((imported / "import.json").read_text())
    del note["results_sha256"]
    (imported / "import.json").write_text(json.dumps(note))
    assert check_import(imported).findings == ()
    assert any("unproven" in one for one in check_import(imported).notes)
    table.head(1).write_parquet(imported / "results.parquet")
    (imported / "extra.csv").write_text("")
    assert [one.kind for one in check_import(imported).findings] == ["foreign", "edited"]
    (imported / "import.json").write_text("{")
    assert "torn" in [one.kind for one in check_import(imported).findings]


def test_a_directory_of_many_is_searched_and_json_has_the_same_lines(campaign: Path, imported: Path) -> None:
    (first_run(campaign) / "logs.zip").unlink()
    done = run("results", "fsck", campaign.parent, "--json")
    plain = json.loads(done.stdout)
    assert done.exit_code == 3
    assert [(one["what"], len(one["findings"])) for one in plain["checked"]] == [("campaign", 1), ("import", 0)]
    assert json.loads(run("results", "fsck", campaign / "runs", "--json").stdout)["checked"] == plain["checked"][:1]
    (campaign.parent / "empty").mkdir()
    assert "neither a campaign nor an import" in str(run("results", "fsck", campaign.parent / "empty").exception)


def test_of_several_directories_those_without_results_are_named_and_left_out(campaign: Path, gpubench: Run) -> None:
    of_a_job = campaign.parent / "checks" / "draco-20260101-000000-000000"
    (of_a_job / "facts").mkdir(parents=True)
    shutil.copy(campaign / "node.pyz", of_a_job)
    done = gpubench("results", "fsck", campaign, campaign.parent / "checks")
    assert (done.returncode, f"{campaign}: campaign, no findings" in done.stdout) == (0, True), done.stderr
    assert f"{campaign.parent / 'checks'} is left out: it is neither a campaign" in done.stderr
    absent = gpubench("results", "fsck", campaign, campaign.parent / "typo")
    assert (absent.returncode, absent.stdout) == (2, "")
    assert f"there is no {campaign.parent / 'typo'}" in absent.stderr


ODD = (None, 7, "x", [], [1], {}, {"a": [{}]}, [[]])


@pytest.mark.parametrize("key", ["sources", "documents", "rows_in", "kept", "schema", "results_sha256"])
def test_an_import_whose_note_has_odd_values_is_found_and_stops_nothing(imported: Path, key: str) -> None:
    original = (imported / "import.json").read_text()
    for value in ODD:
        (imported / "import.json").write_text(json.dumps(json.loads(original) | {key: value}))
        checked = check_import(imported)
        assert checked.findings or (key, value) in [("documents", {}), ("documents", [])], value


@pytest.mark.parametrize("name", ["specs/001-0-*.json", "manifests/*.json", "run.json", "provenance.json", "plan.json"])
def test_files_with_odd_values_are_found_and_stop_nothing(campaign: Path, name: str) -> None:
    forget_hashes(campaign)
    path = next(campaign.rglob(name))
    original = json.loads(path.read_text())
    for key in original:
        for value in ODD:
            path.write_text(json.dumps(original | {key: value}))
            check_campaign(campaign, nobody)
    path.write_text("[" * 100_000)
    assert found(campaign)


def edit_with_hashes(campaign: Path, name: str, change: Callable[[Any], object]) -> None:
    """Edit a file of a run as somebody would who knows of the hashes, too."""
    run_dir = first_run(campaign)
    plain = json.loads((run_dir / name).read_text())
    change(plain)
    (run_dir / name).write_text(json.dumps(plain))
    if name != "run.json":
        data = (run_dir / name).read_bytes()
        files = json.loads((run_dir / "run.json").read_text())["files"]
        edit(run_dir / "run.json", files=files | {name: hashlib.sha256(data).hexdigest()})


PLANNED = [
    *("run", "attempt", "campaign", "site", "job", "block", "order", "variant", "nodes", "workers_per_node"),
    *("threads_per_worker", "protocol", "device", "image", "ucx_version"),
]


@pytest.mark.parametrize("field", PLANNED)
def test_whatever_the_plan_says_of_a_run_contradicts_an_edited_record(campaign: Path, field: str) -> None:
    def change(record: Any) -> None:
        record[field] = record[field] + 1 if isinstance(record[field], int) else f"{record[field]}x"

    edit_with_hashes(campaign, "run.json", change)
    findings = check_campaign(campaign, nobody).findings  # of provenance, too, where that says the same of the run
    (one,) = [one for one in findings if Path(one.path).name == "run.json"]
    assert one.kind == "edited"
    assert f"{field} is " in one.what
    assert "planned is " in one.what


@pytest.mark.parametrize("field", ["workload", "backend", "params", "params_id", "reps", "warmup"])
def test_whatever_the_plan_says_of_a_workload_contradicts_an_edited_record(campaign: Path, field: str) -> None:
    def change(record: Any) -> None:
        workload = record["workloads"][0]
        edited = {"params": {"count": 41}, "reps": workload["reps"] + 1, "warmup": workload["warmup"] + 1}
        workload[field] = edited.get(field, f"{workload[field]}x")

    edit_with_hashes(campaign, "run.json", change)
    findings = [one for one in check_campaign(campaign, nobody).findings if Path(one.path).name == "run.json"]
    assert [one.kind for one in findings] == ["edited"]
    assert "planned is " in findings[0].what


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda plain: plain.update(manifest="0123"), "manifest is '0123', planned is "),
        (
            lambda plain: plain["processes"][0]["ucx"]["env_at_start"].update(UCX_TLS="rc"),
            "UCX_TLS of scheduler is 'rc', planned is 'tcp'",
        ),
        (
            lambda plain: [one["ucx"]["env_at_start"].update(UCX_TLS="rc") for one in plain["processes"]],
            "UCX_TLS of worker is 'rc', planned is 'tcp'",
        ),
        (lambda plain: plain.update(run="feedc0ffee00"), "it is that of another run"),
    ],
)
def test_provenance_that_was_edited_together_with_its_hash_contradicts_the_plan(
    campaign: Path, change: Callable[[Any], object], what: str
) -> None:
    edit_with_hashes(campaign, "provenance.json", change)
    (one,) = check_campaign(campaign, nobody).findings
    assert one.what.count(what) == 1
    assert (one.kind, Path(one.path).name, what in one.what) == ("edited", "provenance.json", True)
