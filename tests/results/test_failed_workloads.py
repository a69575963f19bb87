"""A workload that fails in runs that are ok otherwise: every screen that counts the runs says so, and why."""

import json
from pathlib import Path

import pytest
from campaign_builder import Writer, begin, make_plan, workload

from tests.in_process import invoked

SUITE = (("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 3, 0.41), ("tasks", {"count": 500}, 3, 0.2))
MERGE = workload(*SUITE[0][:3]).params_id
WRONG = "wrong answer: 1 row, not 2"


def campaign(directory: Path, variant: str, blocks: range = range(6)) -> Path:
    """Six blocks; in some, ``merge`` fails under one variant."""
    writer = Writer(begin(directory, make_plan(suite=SUITE, blocks=6)))
    for job, block, run in writer.campaign.rows():
        fails = run.variant == variant and block.block in blocks
        writer.write(job, block, run, failed={MERGE: WRONG} if fails else {})
    return directory


@pytest.mark.parametrize("variant", ["1.17.0", "1.19.0"])
def test_every_screen_tells_it_with_its_reason(tmp_path: Path, variant: str) -> None:
    directory = campaign(tmp_path / "c", variant)
    said = invoked("status", directory).stdout
    assert f"{directory}: 12 ok (6 of them in part) of 12 runs" in said
    (line,) = (line for line in said.splitlines() if f": ok, in part: merge failed: {WRONG}" in line)
    assert line.startswith(f"block 0 {variant} (")
    assert f") and 5 more of it: ok, in part: merge failed: {WRONG}" in line
    assert invoked("logs", directory).stdout.count(f"{variant}: ok: merge failed: {WRONG}") == 6
    judged = invoked("report", directory).stdout
    assert "runs: 12 ok (6 of them in part)" in judged
    note = f"merge failed in 6 of 6 runs of {variant}: {WRONG}"
    assert f"note: {note}" in judged
    assert note in (directory / "report.md").read_text()
    page = (directory / "report.html").read_text()
    assert note in page.partition("What to do next")[0]
    assert "12 ok (6 of them in part)" in page
    assert "12 of 12 runs are ok, 6 of them in part" in invoked("trend", directory).stdout
    listed = json.loads(invoked("report", directory, "--only", "runs", "--json").stdout)["runs"]
    assert {run["reason"] for run in listed if run["variant"] == variant} == {f"merge failed: {WRONG}"}


def test_of_workloads_of_one_name_it_is_said_which_of_them(tmp_path: Path) -> None:
    twice = [("tasks", {"count": count}, 3, 0.2) for count in (500, 900)]
    writer = Writer(begin(tmp_path / "c", make_plan(suite=twice, blocks=3)))
    for job, block, run in writer.campaign.rows():
        writer.write(job, block, run, failed={workload(*twice[1][:3]).params_id: WRONG})
    said = f"tasks count=900 failed: {WRONG}"
    assert f"ok, in part: {said}" in invoked("status", tmp_path / "c").stdout
    assert said in invoked("report", tmp_path / "c", "--only", "runs").stdout


def test_a_baseline_that_always_fails_is_no_reason_for_more_blocks(tmp_path: Path) -> None:
    directory = campaign(tmp_path / "c", "1.17.0")
    judged = invoked("report", directory).stdout
    assert "no data: no block in which both variants ran, of 6 planned; the baseline failed in 6" in judged
    assert "--blocks" not in judged
    assert "more block" not in judged
    once = invoked("report", campaign(tmp_path / "once", "1.17.0", range(1))).stdout
    assert "the baseline failed" not in once


def test_programs_get_the_notes_that_people_get(tmp_path: Path) -> None:
    directory = campaign(tmp_path / "c", "1.19.0")
    notes = json.loads(invoked("compare", directory, "--json").stdout)["notes"]
    assert notes == [f"merge failed in 6 of 6 runs of 1.19.0: {WRONG}"]
    assert [f"note: {note}" in invoked("compare", directory).stdout for note in notes] == [True]


def test_what_is_skipped_after_a_failure_did_not_fail_itself(tmp_path: Path) -> None:
    """Seen: where the order of workloads put the one that fails first, all others were called broken, too."""
    directory, why = tmp_path / "c", "mine.py:17: ValueError: no"
    writer = Writer(begin(directory, make_plan(suite=SUITE, blocks=6)))
    for job, block, run in writer.campaign.rows():
        if run.variant == "1.17.0" or block.block not in (0, 3):
            writer.write(job, block, run, failed={MERGE: why} if run.variant == "1.19.0" else {})
            continue
        path = writer.write(job, block, run, status="failed", reason=f"merge: {why}", failed={MERGE: why})
        record = json.loads((path / "run.json").read_text())
        skipped = {"status": "skipped", "reason": "after the failure of merge"}
        record["workloads"] = [item | (skipped if item["params_id"] != MERGE else {}) for item in record["workloads"]]
        (path / "run.json").write_text(json.dumps(record))
    cells = {cell["workload"]: cell for cell in json.loads(invoked("compare", directory, "--json").stdout)["cells"]}
    assert cells["merge"]["verdict"] == "broken"
    assert (cells["tasks"]["verdict"], cells["tasks"]["blocks"]) == ("inconclusive", 4)


def test_what_an_image_lacks_is_no_reason_for_more_blocks(tmp_path: Path) -> None:
    """Seen: "5 more blocks may decide", of a workload whose back-end's package the images don't have."""
    directory, why = tmp_path / "c", "merge with back-end dask needs cudf, and this image has none"
    writer = Writer(begin(directory, make_plan(suite=SUITE, blocks=6)))
    for row in writer.campaign.rows():
        path = writer.write(*row, failed={MERGE: why})
        record = json.loads((path / "run.json").read_text())
        skipped = {"status": "skipped", "reason": why}
        record["workloads"] = [item | (skipped if item["params_id"] == MERGE else {}) for item in record["workloads"]]
        (path / "run.json").write_text(json.dumps(record))
    judged = invoked("report", directory).stdout
    assert f"no data: 1.17.0 can't measure it: {why}" in judged
    assert "--blocks" not in judged
    assert "more block" not in judged
