"""What comes out of pods' logs, and where it goes."""

import hashlib
import json
from pathlib import Path

import pytest

from gpubench.errors import DataError, MissingToolError
from gpubench.node.spec.log_transport import encode
from gpubench.schedulers import pod_log_collector


@pytest.fixture
def job_dir(tmp_path: Path) -> Path:
    made = tmp_path / "campaign" / "jobs" / "j001-n2"
    made.mkdir(parents=True)
    return made


def record(status: str, attempt: int = 1) -> bytes:
    return (json.dumps({"attempt": attempt, "run": "ab12", "status": status}, indent=1) + "\n").encode()


def log(status: str, attempt: int = 1) -> str:
    files = {"run.json": record(status, attempt), "samples.jsonl": b"{}\n"}
    return "\n".join(["hello", *encode(f"ab12-{attempt}", files)]) + "\n"


def found(job_dir: Path) -> dict[str, tuple[int, str]]:
    runs = job_dir.parents[1] / "runs"
    plain = {path.parent.name: json.loads(path.read_text()) for path in sorted(runs.glob("*/run.json"))}
    return {name: (one["attempt"], one["status"]) for name, one in plain.items()}


def test_gathering_twice_is_harmless_and_other_lines_are_kept_as_a_log(job_dir: Path) -> None:
    for _ in range(2):
        pod_log_collector.keep(job_dir, "uid", 0, "run-0", log("ok"), code=0)
    assert found(job_dir) == {"ab12-1": (1, "ok")}
    assert (job_dir / "run-0-rank0.log").read_text() == "hello\n"
    assert (job_dir.parents[1] / "runs/ab12-1/samples.jsonl").read_text() == "{}\n"


def test_a_job_that_starts_again_gets_the_next_attempt_though_its_pods_count_from_one(job_dir: Path) -> None:
    (job_dir.parents[1] / "runs" / "ab12-1").mkdir(parents=True)  # of a start that left no record
    pod_log_collector.keep(job_dir, "first", 0, "run-0", log("skipped"), code=0)
    pod_log_collector.keep(job_dir, "second", 0, "run-0", log("ok"), code=0)
    pod_log_collector.keep(job_dir, "first", 0, "run-0", log("skipped"), code=0)
    assert found(job_dir) == {"ab12-2": (2, "skipped"), "ab12-3": (3, "ok")}


def test_runs_that_can_not_be_kept_are_one_line_and_gathered_when_they_can(job_dir: Path) -> None:
    runs = job_dir.parents[1] / "runs"
    runs.write_text("a file where the runs should be")
    with pytest.raises(MissingToolError, match=r"can't write .*runs/ab12-1: "):
        pod_log_collector.keep(job_dir, "uid", 0, "run-0", log("ok"), code=0)
    runs.unlink()
    pod_log_collector.keep(job_dir, "uid", 0, "run-0", log("ok"), code=0)
    assert found(job_dir) == {"ab12-1": (1, "ok")}


def test_a_run_has_its_directory_from_its_start_and_one_of_another_start_is_another(job_dir: Path) -> None:
    """Seen on Kubernetes 1.36.2: a run of 50 s whose pod was deleted was "lost before this run started"."""
    for start in ("first", "first", "second"):
        pod_log_collector.keep(job_dir, start, 0, "run-0", "", code=None, run="ab12-1")
    assert {path.name for path in (job_dir.parents[1] / "runs").iterdir()} == {"ab12-1", "ab12-2"}
    pod_log_collector.keep(job_dir, "second", 0, "run-0", log("ok"), code=0, run="ab12-1")
    assert found(job_dir) == {"ab12-2": (2, "ok")}


def test_a_log_that_was_turned_over_is_told_and_the_last_container_has_the_result_again(job_dir: Path) -> None:
    """Seen on Kubernetes 1.36.2 with containerLogMaxSize 8Ki.

    The result was written 0.1 s before the kubelet turned the log over; what it shows then is empty.
    """
    pod_log_collector.keep(job_dir, "uid", 0, "run-1", "", code=137, run="cd34-1")  # killed: it has printed nothing
    pod_log_collector.keep(job_dir, "uid", 0, "run-0", "", code=0, run="ab12-1")
    (words,) = pod_log_collector.torn(job_dir)
    assert words.startswith("log of container run-0, rank 0: holds no result; did the kubelet turn it over (containerL")
    pod_log_collector.keep(job_dir, "uid", 0, "end", log("ok"), code=0)
    assert pod_log_collector.torn(job_dir) == []
    assert found(job_dir) == {"ab12-1": (1, "ok")}


def test_what_is_still_on_its_way_is_not_torn_and_what_never_came_is(job_dir: Path) -> None:
    part = log("ok")[:-20]
    pod_log_collector.keep(job_dir, "uid", 0, "run-0", part, code=None)
    assert not (job_dir.parents[1] / "runs").exists()
    pod_log_collector.keep(job_dir, "uid", 0, "run-0", part, code=0)
    assert pod_log_collector.torn(job_dir) == ["log of container run-0, rank 0: its end is missing"]
    assert (job_dir.parents[1] / "runs/ab12-1").is_dir()  # it began, and left no record
    pod_log_collector.keep(job_dir, "uid", 0, "run-0", log("ok"), code=0)
    assert pod_log_collector.torn(job_dir) == []
    assert found(job_dir) == {"ab12-1": (1, "ok")}


def test_what_came_torn_is_forgotten_when_the_job_starts_again(job_dir: Path) -> None:
    pod_log_collector.keep(job_dir, "first", 0, "run-0", log("ok")[:-20], code=0)
    pod_log_collector.begin(job_dir)
    assert pod_log_collector.torn(job_dir) == []
    pod_log_collector.keep(job_dir, "second", 0, "run-0", log("ok"), code=0)
    pod_log_collector.finish(job_dir)
    assert found(job_dir) == {"ab12-2": (2, "ok")}
    assert pod_log_collector.complete(job_dir)


def test_a_damaged_memory_is_told_with_what_to_do(job_dir: Path) -> None:
    (job_dir / "gathered.json").write_text("[")
    with pytest.raises(DataError, match=r"gathered\.json can't be read; remove .*; results are gathered again"):
        pod_log_collector.keep(job_dir, "uid", 0, "run-0", log("ok"), code=0)


def test_the_hash_of_a_provenance_that_gets_another_number_follows_it(job_dir: Path) -> None:
    (job_dir.parents[1] / "runs" / "ab12-1").mkdir(parents=True)
    provenance = (json.dumps({"attempt": 1, "run": "ab12"}, indent=1) + "\n").encode()
    plain = {"attempt": 1, "files": {"provenance.json": hashlib.sha256(provenance).hexdigest()}, "status": "ok"}
    files = {"run.json": (json.dumps(plain, indent=1) + "\n").encode(), "provenance.json": provenance}
    pod_log_collector.keep(job_dir, "uid", 0, "run-0", "\n".join(encode("ab12-1", files)), code=0)
    here = job_dir.parents[1] / "runs" / "ab12-2"
    assert json.loads((here / "provenance.json").read_text())["attempt"] == 2
    said = json.loads((here / "run.json").read_text())["files"]["provenance.json"]
    assert said == hashlib.sha256((here / "provenance.json").read_bytes()).hexdigest()
