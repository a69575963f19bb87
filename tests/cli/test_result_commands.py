"""How results are named, what their commands are called, and what each of them can't do."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from gpubench.node.writer.run_dir import claim
from tests.conftest import ROOT
from tests.in_process import invoked as run
from tests.store.campaign_builder import QUICK, Writer, begin, finish, make_plan

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1"


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / "campaign", tmp_path / "outputs" / "tiny")
    shutil.copytree(GOLDEN / "import", tmp_path / "import")
    return tmp_path / "outputs"


def test_the_log_of_a_process_that_crashed_is_shown_from_the_crash_on(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(suite=QUICK[4:], blocks=1))
    first, second = campaign.rows()
    ran, failed = Writer(campaign).write(*first), Writer(campaign).write(*second, status="failed")
    lines = {
        "worker-0-0": [*"abc", "[n1:7:1:9] Caught signal 11 (Segmentation fault: not mapped)", *map(str, range(90))],
        "worker-0-1": ["a", "Fatal Python error: Aborted", "in here"],
        "client": [f"line {number}" for number in range(90)],
    }
    for directory in (ran, failed):
        with zipfile.ZipFile(directory / "logs.zip", "w") as archive:
            for name, text in lines.items():
                archive.writestr(name, "\n".join(text))
    shown = run("logs", campaign.directory).stdout.splitlines()
    process = [number for number, line in enumerate(shown) if f"({failed}" in line]
    assert not [line for line in shown if str(ran) in line]
    assert shown[process[0] + 1 : process[1]] == [f"    {line}" for line in lines["worker-0-0"][3:18]]
    assert shown[process[1] + 1 : process[2]] == [f"    {line}" for line in lines["worker-0-1"][1:]]
    assert shown[process[2] + 1 :][:15] == [f"    {line}" for line in lines["client"][-15:]]


def test_of_a_run_that_is_running_no_log_is_missed(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(suite=QUICK[4:], blocks=1))
    claim(campaign.runs_dir, next(campaign.rows())[2].run)
    assert run("logs", campaign.directory).stdout.splitlines()[-1].endswith(": pending: running")


def test_what_became_of_every_run_is_a_content_of_its_own(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(suite=QUICK[4:], blocks=3))
    finish(campaign)
    plan = campaign.plan
    shutil.rmtree(next(campaign.runs_dir.iterdir()))
    said = run("report", campaign.directory, "--only", "runs").stdout.splitlines()
    planned = 3 * len(plan.variants)
    assert said[0] == f"{plan.campaign}: {planned - 1} ok, 1 pending"
    assert len(said) == planned + 2
    found = json.loads(run("report", campaign.directory, "--only", "runs", "--json").stdout)
    assert (found["schema"], found["campaign"]) == ("gpubench/runs/1", plan.campaign)
    by_run = {one["run"]: one for one in found["runs"]}
    assert {name: one["order"] for name, one in by_run.items()} == {one.run: one.order for *_, one in campaign.rows()}
    (gone,) = [one for one in by_run.values() if one["status"] != "ok"]
    assert (gone["status"], gone["seconds"], gone["directory"]) == ("pending", None, None)
    assert all(one["seconds"] >= 0 for one in by_run.values() if one["status"] == "ok")


@pytest.mark.parametrize(
    "inside",
    ["plan.json", "jobs/*/specs", "results.parquet", "runs/*/samples.jsonl"],
)
def test_any_path_inside_a_campaign_names_it(outputs: Path, inside: str) -> None:
    whole = run("compare", "outputs/tiny")
    path = next(Path("outputs/tiny").glob(inside))
    assert (run("compare", path).stdout, whole.exit_code) == (whole.stdout, 21)
    assert run("status", path).stdout == run("status", "outputs/tiny").stdout
    assert run("trend", path).stdout == run("trend", "outputs/tiny").stdout
    assert run("results", "fsck", path).stdout == run("results", "fsck", "outputs/tiny").stdout


def test_so_does_the_directory_in_which_somebody_stands(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run("compare", "outputs/tiny").stdout
    monkeypatch.chdir(next((outputs / "tiny" / "runs").iterdir()))
    assert run("compare", ".").stdout == run("compare", "..").stdout == run("compare", "../..").stdout == whole
    assert str(run("compare", "nothing").exception).startswith("nothing is no campaign")


def test_a_table_that_lies_in_a_campaign_and_is_no_file_of_its_own_is_a_table(outputs: Path) -> None:
    table = "outputs/tiny/mine.csv"
    assert run("results", "export", "csv", "outputs/tiny", table).exit_code == 0
    assert run("compare", table).exit_code == 21
    assert run("compare", table, "--baseline", "a", "--candidate", "b").exit_code == 21


@pytest.mark.parametrize(("command", "default"), [(["compare"], True), (["bench", "--campaign"], False)])
def test_fail_on_chooses_the_exit_code_and_bench_without_it_ends_with_0(
    outputs: Path, tmp_path: Path, command: list[str], default: bool
) -> None:
    undecided = run(*command, outputs / "tiny", "--fail-on", "inconclusive")
    assert undecided.exit_code == 21
    assert ("--fail-on inconclusive: exit 21" in undecided.stdout) is not default
    assert run(*command, outputs / "tiny", "--fail-on", "regression").exit_code == 0
    assert run(*command, outputs / "tiny").exit_code == (21 if default else 0)
    slower = begin(tmp_path / "slower", make_plan(suite=QUICK[3:]))
    finish(slower, lambda label, _: 1.5 if label == "1.19.0" else 1.0)
    assert run(*command, slower.directory, "--fail-on", "regression").exit_code == 20


def test_the_page_of_two_targets_is_called_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        finish(begin(tmp_path / name, make_plan(suite=QUICK[4:], blocks=3, campaign=name)))
    done = run("report", "a/plan.json", "b", "--baseline", "1.17.0")
    assert done.exit_code == 0, done.exception
    assert "page: b-against-a.html" in done.stdout
    assert "<html" in Path("b-against-a.html").read_text()


def test_a_margin_other_than_planned_is_said_beside_the_verdicts(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(suite=QUICK[4:], blocks=5))
    finish(campaign)
    note = "note: the campaign was planned with a margin of ±3 %, not ±30 %"
    said = [
        run("compare", campaign.directory, *words).stdout for words in (["--margin", "30%"], ["--margin", "3%"], [])
    ]
    assert [note in text for text in said] == [True, False, False]
    assert note.removeprefix("note: ") in run("compare", campaign.directory, "--margin", "30%", "--markdown").stdout
