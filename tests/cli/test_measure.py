"""`gpubench measure`: bad words are one line, a real workload is measured."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.campaign import measure_result
from gpubench.campaign.measure_result import measured, result_lines
from gpubench.node.workloads.catalogue import CATALOGUE
from tests.cli.test_bad_input import one_line
from tests.conftest import Run, need


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("measure strided-sum --gpus 1", "has no NVIDIA driver"),
        ("bench --site local-gpu", "(libnvidia-ml.so.1); --site local measures on CPUs"),
    ],
)
def test_gpus_that_are_not_there_are_refused_before_an_image_is_built(
    gpubench: Run, tmp_path: Path, words: str, message: str
) -> None:
    need(not Path("/proc/driver/nvidia/version").exists(), "a machine without an NVIDIA driver")
    done = gpubench(*words.split())
    assert (done.returncode, done.stdout, message in one_line(done)) == (5, "", True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.system
def test_a_workload_is_measured_with_what_was_set_and_its_answer_is_checked(gpubench: Run, tmp_path: Path) -> None:
    words = ("measure", "tasks", "--set", "count=2e1", "--set", "limits.start=90s", "--reps", "2", "--warmup", "0")
    done = gpubench(*words, "--cpus", "1", "--protocol", "tcp", "--ucx", "1.22.0", "--json", code=0)
    found = json.loads(done.stdout)
    assert (found["schema"], found["status"], found["answer"]) == ("gpubench/measure/1", "ok", "ok")
    assert (found["params"]["count"], found["reps"], len(found["wall_s"])) == (20, 2, 2)
    assert found["cluster"]["workers"] == 1
    assert found["tasks_per_s"] == pytest.approx(20 / found["median_s"])
    assert (tmp_path / found["directory"] / "run.json").exists()
    words = ("measure", "merge", "--set", "limits.workload=10ms", "--protocol", "tcp", "--ucx", "1.22.0")
    failed = gpubench(*words)
    assert failed.returncode == 4, failed.stdout + failed.stderr
    assert "merge failed: WorkloadTimeoutError: no answer within 0.01 s" in one_line(failed)
    assert "merge, dask: failed" in failed.stdout.splitlines()


@pytest.mark.system
def test_an_index_that_explicit_comms_cannot_make_is_skipped_with_what_to_leave_out(gpubench: Run) -> None:
    words = ("measure", "merge", "--backend", "explicit-comms", "--set", "rows_per_worker=2000", "--reps", "1")
    done = gpubench(*words, "--set", "set_index=true", "--protocol", "tcp", "--ucx", "1.22.0", code=4)
    assert "has no client: leave set_index out" in one_line(done)


def measured_campaign(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, backend: str, params: dict[str, Any]
) -> Any:
    """Of one repetition of two seconds, without a record."""
    spec = SimpleNamespace(name=name, backend=backend, params=params, params_id="0", warmup=0)
    job = SimpleNamespace(nodes=1, workers_per_node=2)
    outcome = SimpleNamespace(record=None, status="ok", reason="", directory=place, job=job)
    monkeypatch.setattr(measure_result, "account_now", lambda _campaign: SimpleNamespace(outcomes=[outcome]))
    (place / "samples.jsonl").write_text('{"warmup": false, "wall_s": 2.0, "bytes": 0, "answer": "ok"}\n')
    return SimpleNamespace(plan=SimpleNamespace(workloads=[spec]), directory=place)


@pytest.mark.parametrize(
    ("name", "count", "rate"), [("tasks", 20, 10.0), ("mine.py:join", 20, None), ("m.py:j", "many", None)]
)
def test_tasks_a_second_are_those_of_the_workload_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: object, rate: float | None
) -> None:
    campaign = measured_campaign(tmp_path, monkeypatch, name, "dask", {"count": count})
    assert measured(campaign, held=0, memory=0)["tasks_per_s"] == rate


@pytest.mark.parametrize(
    ("name", "backend", "seen"), [("merge", "explicit-comms", None), ("tasks", "dask", None), ("merge", "dask", 0)]
)
def test_what_passes_no_log_is_not_known_and_not_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, backend: str, seen: int | None
) -> None:
    params = {key: param.default for key, param in CATALOGUE[name].params.items()}
    campaign = measured_campaign(tmp_path, monkeypatch, name, backend, params)
    result = measured(campaign, held=0, memory=0)
    assert result["moved"]["seen_bytes"] == seen
    lines = [*result_lines({**result, "cluster": {}})]
    assert ("  moved    not known: it passes none of Dask's logs" in lines) is (seen is None)


def test_what_had_to_move_is_said_of_a_repetition_as_what_was_seen_is() -> None:
    moved = {"seen_bytes": 50 * 2**20, "least_moved_bytes": 40 * 2**20, "keys_left": 0, "links": []}
    result = {"workload": "message", "backend": "dask", "params": {}, "status": "ok", "cluster": {}, "answer": "ok"}
    result |= {"reps": 5, "warmup": 1, "wall_s": [1.0] * 5, "median_s": 1.0, "least_s": 1.0, "most_s": 1.0}
    result |= {"bytes": 0, "tasks_per_s": 0.0, "check": {}, "warnings": [], "directory": "d", "moved": moved}
    assert "  moved    50.0 MiB between workers, 10.0 MiB a repetition (at least 8.0 MiB had to be)" in result_lines(
        result
    )
