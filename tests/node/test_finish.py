"""What the supervisor writes at the end of a run."""

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.run import new_record, provenance, take_result, write_all
from gpubench.node.spec import RunRecord, WorkloadSpec
from gpubench.node.spec.plain import to_plain
from gpubench.node.spec.records import workload_record
from gpubench.node.supervisor import registration_phases
from gpubench.node.writer.run_dir import claim
from gpubench.store.rundirs import read_record
from tests.node.specs_by_hand import RUN, run_spec

NAMES = ("merge", "tasks", "message")
SPEC = run_spec(
    variant="new", workloads=[WorkloadSpec(name, "dask", {}, reps=1, warmup=0, timeout_s=9.0) for name in NAMES]
)
PROCESS = {"role": "scheduler", "ucx": {"env_at_start": {"UCX_TLS": "tcp"}, "env": {"UCX_TLS": "tcp", "UCX_X": "1"}}}


def result(*statuses: str, error: str = "") -> dict[str, Any]:
    workloads = [
        to_plain(workload_record(planned, status, "" if status == "ok" else f"{planned.name} {status}"))
        for planned, status in zip(SPEC.workloads, statuses, strict=True)
    ]
    return {
        "error": error,
        "transport": ["tcp"],
        "lanes": ["self/memory", "tcp/lo"],
        "carriers": ["tcp"],
        "processes": [PROCESS],
        "workloads": workloads,
        "dask_config": {"a": 1},
        "registered_s": [0.5, 0.75],
        "warnings": ["3 workers connected, 2 planned"],
    }


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    claim(tmp_path, RUN)
    return claim(tmp_path, RUN)


@pytest.fixture
def record(run_dir: Path) -> RunRecord:
    return new_record(SPEC, run_dir, "2026-11-20T12:00:00.000001+00:00", "f" * 64)


@pytest.mark.parametrize(
    ("statuses", "error", "expected"),
    [
        (("ok", "ok", "ok"), "", ("ok", "")),
        (("ok", "failed", "skipped"), "", ("ok", "")),
        (("failed", "skipped", "skipped"), "", ("failed", "merge: merge failed")),
        (("skipped", "skipped", "skipped"), "", ("failed", "merge: merge skipped")),
        (("ok", "ok", "ok"), "UCX used sm, the site expects tcp", ("failed", "UCX used sm, the site expects tcp")),
    ],
)
def test_a_run_is_judged_by_its_cluster_and_fails_with_its_workloads_only_when_none_is_left(
    record: RunRecord, statuses: tuple[str, ...], error: str, expected: tuple[str, str]
) -> None:
    record.warnings.append("dropped from the environment: UCX_TLS")
    take_result(record, result(*statuses, error=error))
    assert (record.status, record.reason) == expected
    assert tuple(item.status for item in record.workloads) == statuses
    assert record.transport == ["tcp"]
    assert record.warnings == ["dropped from the environment: UCX_TLS", "3 workers connected, 2 planned"]


def test_the_provenance_says_what_ran_where_and_what_nobody_planned(record: RunRecord) -> None:
    found = provenance(SPEC, record, result("ok", "ok", "ok"), [{"rank": 0}, {"rank": 1}])
    assert found == json.loads(json.dumps(found))
    assert found["transport"] == {"lanes": ["self/memory", "tcp/lo"], "observed": ["tcp"], "carriers": ["tcp"]}
    assert found["binding_env"] == {"UCX_X": "1"}
    assert (found["manifest"], found["node_half"], found["attempt"]) == (SPEC.manifest, "f" * 64, 2)
    assert [node["rank"] for node in found["nodes"]] == [0, 1]
    assert found["registered_s"] == [0.5, 0.75]


def test_the_provenance_of_a_run_without_a_client_has_the_same_keys(record: RunRecord) -> None:
    whole = provenance(SPEC, record, result("ok", "ok", "ok"), [])
    assert set(provenance(SPEC, record, None, [])) == set(whole)


@pytest.mark.parametrize(
    ("registered_s", "half"), [([2.0], 2.0), ([1.0, 3.0], 1.0), ([4.0, 1.0, 2.0], 2.0), ([1.0, 2.0, 3.0, 9.0], 2.0)]
)
def test_phases_say_when_the_first_half_and_all_of_the_workers_were_there(
    registered_s: list[float], half: float
) -> None:
    expected = {"first_worker": min(registered_s), "half_workers": half, "all_workers": max(registered_s)}
    assert registration_phases(registered_s) == expected
    assert registration_phases([]) == {}


@pytest.mark.parametrize(("full", "written"), [("logs.zip", []), ("provenance.json", ["logs.zip"])])
def test_a_run_whose_other_files_can_not_be_written_has_no_record(
    record: RunRecord, run_dir: Path, full: str, written: list[str]
) -> None:
    (run_dir / full).mkdir()  # in the way
    with pytest.raises(OSError, match=full):
        write_all(run_dir, record, {}, {})
    assert sorted(path.name for path in run_dir.iterdir() if path.is_file()) == written


def test_a_record_and_its_logs_read_back(record: RunRecord, run_dir: Path) -> None:
    take_result(record, result("ok", "ok", "ok"))
    write_all(run_dir, record, provenance(SPEC, record, None, []), {"rank0/worker.log": "é\n", "rank1/worker.log": ""})
    assert sorted(path.name for path in run_dir.iterdir()) == ["logs.zip", "provenance.json", "run.json"]
    back = read_record(run_dir)
    assert back is not None
    assert sorted(back.files) == ["logs.zip", "provenance.json"]
    assert dataclasses.replace(back, files={}) == record
    assert record.ended_at > record.started_at
    with zipfile.ZipFile(run_dir / "logs.zip") as logs:
        assert logs.namelist() == ["rank0/worker.log", "rank1/worker.log"]
        assert logs.read("rank0/worker.log").decode() == "é\n"
