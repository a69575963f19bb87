import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.spec import RunRecord
from gpubench.node.spec.plain import parse_lines
from gpubench.node.writer.run_dir import (
    append_links,
    append_sample,
    attempt_of,
    claim,
    finish,
    finished,
    recorded,
    write_provenance,
)

SAMPLE = {"workload": "merge", "rep": 0, "warmup": False, "wall_s": 0.25, "cpu_s": None}


def record(**changes: Any) -> RunRecord:
    names = [field.name for field in dataclasses.fields(RunRecord) if field.default is dataclasses.MISSING]
    facts = {name: "x" for name in names if name not in ("transport", "hosts", "warnings", "phases", "workloads")}
    return RunRecord(**{**facts, **changes})


def test_a_run_directory_is_claimed_with_the_first_attempt_that_is_free(tmp_path: Path) -> None:
    runs = tmp_path / "deep" / "runs"
    first, second = claim(runs, "abc"), claim(runs, "abc")
    other = claim(runs, "abd")
    assert [path.name for path in (first, second, other)] == ["abc-1", "abc-2", "abd-1"]
    assert [attempt_of(path) for path in (first, second)] == [1, 2]


CLAIM = """
import sys
from pathlib import Path
from gpubench.node.writer.run_dir import claim
print(*(claim(Path(sys.argv[1]), "abc").name for _ in range(20)))
"""


def test_no_two_processes_claim_the_same_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLAIM, str(tmp_path / "runs")]
    claimants = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    names = [name for claimant in claimants for name in claimant.communicate(timeout=150)[0].split()]
    assert sorted(names, key=lambda name: int(name[4:])) == [f"abc-{number}" for number in range(1, 61)]


def test_a_claim_that_can_not_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file is in the way")
    with pytest.raises(OSError, match="runs"):
        claim(tmp_path / "runs", "abc")


def test_samples_are_lines_that_read_back_and_are_appended(tmp_path: Path) -> None:
    for rep in range(3):
        append_sample(tmp_path, {**SAMPLE, "rep": rep})
    text = (tmp_path / "samples.jsonl").read_text(encoding="utf-8")
    assert list(parse_lines(text)) == [
        {"workload": "merge", "rep": rep, "warmup": False, "wall_s": 0.25} for rep in range(3)
    ], "what couldn't be read is in no line"


def test_links_are_appended_over_workloads(tmp_path: Path) -> None:
    append_links(tmp_path, [{"sender": "tcp://a", "bytes": 1}])
    append_links(tmp_path, [])
    append_links(tmp_path, [{"sender": "tcp://b", "bytes": 2}, {"sender": "ü", "bytes": 3}])
    text = (tmp_path / "links.jsonl").read_text(encoding="utf-8")
    assert [row["bytes"] for row in parse_lines(text)] == [1, 2, 3]
    assert "ü" in text


def test_a_finished_run_has_its_record_and_provenance_as_json(tmp_path: Path) -> None:
    write_provenance(tmp_path, {"b": 1, "a": "ü"})
    finish(tmp_path, record(status="ok"))
    assert json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8")) == {"a": "ü", "b": 1}
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["status"] == "ok"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_variable_that_is_no_utf8_costs_no_run_its_record(tmp_path: Path) -> None:
    value = os.fsdecode(b"M\xfcller")
    write_provenance(tmp_path, {"environment": {"USER": value}})
    finish(tmp_path, record(status="failed", reason=f"no such file: /home/{value}"))
    assert json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))["environment"] == {"USER": "M?ller"}
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["reason"].endswith("/home/M?ller")


@pytest.mark.parametrize(("status", "ended"), [("ok", True), ("failed", True), ("skipped", False)])
def test_only_a_run_that_ran_to_its_end_is_finished(tmp_path: Path, status: str, ended: bool) -> None:
    finish(claim(tmp_path, "abc"), record(status=status))
    assert finished(tmp_path, "abc") == (tmp_path / "abc-1" if ended else None)


def test_an_attempt_without_a_record_or_with_one_that_can_not_be_read_is_not_finished(tmp_path: Path) -> None:
    claim(tmp_path, "abc")
    for text in ("", '{"status": "o', "[]", '"ok"', "\x00"):
        (claim(tmp_path, "abc") / "run.json").write_text(text)
    assert finished(tmp_path, "abc") is None
    last = claim(tmp_path, "abc")
    finish(last, record(status="ok"))
    assert finished(tmp_path, "abc") == last


def test_another_run_whose_name_starts_alike_does_not_count(tmp_path: Path) -> None:
    finish(claim(tmp_path, "abcd"), record(status="ok"))
    assert finished(tmp_path, "abc") is None


def test_a_record_holds_the_hash_of_every_other_file_as_it_was_when_the_run_ended(tmp_path: Path) -> None:
    path = claim(tmp_path, "abc")
    append_sample(path, SAMPLE)
    write_provenance(path, {"nodes": []})
    (path / "scratch").write_text("not a file of a run")
    finish(path, record(status="ok"))
    plain = json.loads((path / "run.json").read_text())
    there = {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in plain["files"]}
    assert plain["files"] == there
    assert sorted(there) == ["provenance.json", "samples.jsonl"]


def test_a_run_that_somebody_has_set_aside_is_no_attempt(tmp_path: Path) -> None:
    for name in ("a1-1.old", "a1-2", "a1-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "a1-1.old" / "run.json").write_text('{"status": "ok"}')
    assert (finished(tmp_path, "a1"), recorded(tmp_path, "a1")) == (None, set())
    (tmp_path / "a1-2" / "run.json").write_text('{"status": "failed"}')
    assert (finished(tmp_path, "a1"), recorded(tmp_path, "a1")) == (tmp_path / "a1-2", {2})
