"""`gpubench measure`: bad words are one line, a real workload is measured."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.test_bad_input import one_line
from tests.conftest import Run, need

CPUS = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["mrege"], 2, "no workload 'mrege' (did you mean 'merge'?)"),
        (["merge", "--backend", "dusk"], 2, "merge has no backend 'dusk' (did you mean 'dask'?)"),
        (["merge", "--set", "row_per_worker=3"], 2, "no parameter 'row_per_worker' (did you mean 'rows_per_worker'?)"),
        (["merge", "--set", "rows_per_worker"], 2, "write it like --set rows_per_worker=..."),
        (["merge", "--set", "rows_per_worker=1.5"], 2, "merge.rows_per_worker = 1.5: not a whole number"),
        (["merge", "--set", "join=left"], 2, "not one of default, shuffle, broadcast"),
        (["message", "--set", "size=1024"], 2, "a quantity needs its unit"),
        (["strided-sum", "--set", "generate=1"], 2, "write true or false"),
        (["merge", "--set", "limits.wrkload=3s"], 2, "unknown key 'limits.wrkload' (did you mean 'workload'?)"),
        (["merge", "--size", "tiny"], 2, "no --size 'tiny'"),
        (["merge", "--warmup", "9999999"], 2, "not between 0 and 1 000 000"),
        (["merge", "--cpus", str(CPUS + 1)], 2, f"lets us use {CPUS}; --cpus {CPUS}, or --workers {CPUS + 1}"),
        (["merge", "--cpus", "1", "--threads", "2"], 2, "is no multiple of 2, the threads of a worker"),
        (["merge", "--cpus", "1", "--workers", "2"], 2, "exclude each other"),
        (["merge", "--gpus", "9", "--site", "draco"], 2, "a node of draco has 8; --gpus 8"),
    ],
)
def test_a_wrong_word_is_named_before_anything_is_done(
    gpubench: Run, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    done = gpubench("measure", *arguments)
    assert (done.returncode, said in one_line(done)) == (code, True), done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_gpus_on_a_machine_without_a_driver_are_refused(gpubench: Run) -> None:
    need(not Path("/proc/driver/nvidia/version").exists(), "a machine without an NVIDIA driver")
    done = gpubench("measure", "strided-sum", "--gpus", "1")
    assert done.returncode == 5
    assert "has no NVIDIA driver" in one_line(done)


def test_a_campaign_on_gpus_that_are_not_there_is_refused_before_an_image_is_built(
    gpubench: Run, tmp_path: Path
) -> None:
    need(not Path("/proc/driver/nvidia/version").exists(), "a machine without an NVIDIA driver")
    done = gpubench("bench", "--site", "local-gpu")
    assert done.returncode == 5
    assert one_line(done).endswith("(libnvidia-ml.so.1); --site local measures on CPUs")
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.system
def test_a_workload_is_measured_with_what_was_set_and_its_answer_is_checked(gpubench: Run, tmp_path: Path) -> None:
    words = ("measure", "tasks", "--set", "count=2e1", "--set", "limits.start=90s", "--reps", "2", "--warmup", "0")
    done = gpubench(*words, "--cpus", "1", "--protocol", "tcp", "--ucx", "1.22.0", "--json")
    assert done.returncode == 0, done.stderr
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
