"""`gpubench measure`: bad words are one line, a real workload is measured, also on a cluster of somebody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.cli.workloads import attach
from gpubench.errors import InterruptedByUserError
from tests.cli.campaigns import SIGINT, Front, until
from tests.cli.test_bad_input import one_line
from tests.conftest import Run, need, plain_environment

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
        (["merge", "--cpus", str(CPUS + 1)], 2, f"lets us use {CPUS}; --cpus {CPUS}, or --workers {CPUS + 1}"),
        (["merge", "--cpus", "1", "--threads", "2"], 2, "is no multiple of 2, the threads of a worker"),
        (["merge", "--cpus", "1", "--workers", "2"], 2, "exclude each other"),
        (["merge", "--gpus", "9", "--site", "draco"], 2, "a node of draco has 8; --gpus 8"),
        (["merge", "--python", "python3"], 2, "name its --scheduler-file"),
        (["merge", "--scheduler-file", "none.json"], 2, "--scheduler-file none.json: No such file"),
        (["merge", "--scheduler-file", "none.json", "--cpus", "1"], 2, "leave --cpus out"),
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


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of two workers that Dask's own commands started; its scheduler file."""
    directory = tmp_path_factory.mktemp("foreign")
    file = directory / "scheduler.json"
    common = ["--interface", "lo", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    worker = ["worker", "--scheduler-file", str(file), "--nthreads", "1", "--memory-limit", "1GiB", *common]
    commands = [["scheduler", "--port", "0", "--scheduler-file", str(file), *common], worker, worker]
    processes = []
    for number, command in enumerate(commands):
        with (directory / f"{number}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [str(Path(sys.executable).with_name("dask")), *command],
                    cwd=directory,
                    env=plain_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
        until(file.exists, "the scheduler file")
    try:
        until(lambda: state(file)["workers"] == 2, "two workers")
        yield file
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)


def state(file: Path) -> dict[str, Any]:
    """What is on the cluster: workers, what they have of ours, results, tasks, and how long their logs may grow."""
    import distributed

    def of_worker(dask_worker: Any) -> tuple[list[str], list[str], int, int | None]:
        import sys

        ours = [name for name in sys.modules if name.partition(".")[0] == "gpubench"]
        finders = [type(one).__name__ for one in sys.meta_path if type(one).__name__ == "ZipImporter"]
        return ours, finders, len(dask_worker.data), dask_worker.transfer_incoming_log.maxlen

    with distributed.Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
        workers = client.run(of_worker)
        return {
            "workers": len(workers),
            "found": sorted(map(str, workers.values())),
            "tasks": client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)),
        }


def attached(file: Path, *words: str) -> list[str]:
    workload, *more = words
    return ["measure", workload, "--scheduler-file", str(file), "--python", sys.executable, "--reps", "2", *more]


@pytest.mark.system
def test_a_running_cluster_is_measured_and_left_as_it_was(gpubench: Run, tmp_path: Path, foreign: Path) -> None:
    before = state(foreign)
    files = sorted(foreign.parent.iterdir())
    done = gpubench(*attached(foreign, "transpose-sum", "--set", "size=200", "--set", "chunk=100", "--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["status"], found["answer"], found["reps"]) == ("ok", "ok", 2)
    assert found["cluster"]["workers"] == 2
    assert found["moved"]["seen_bytes"] >= found["moved"]["least_moved_bytes"] > 0
    assert any("gpubench didn't start this cluster" in line for line in found["not_controlled"])
    until(lambda: state(foreign) == before, "a cluster as it was")
    assert sorted(foreign.parent.iterdir()) == files


@pytest.mark.system
def test_a_function_of_the_users_is_measured_on_a_running_cluster(gpubench: Run, tmp_path: Path, foreign: Path) -> None:
    before = state(foreign)
    (tmp_path / "mine.py").write_text(
        "def double(number):\n    return 2 * number\n\n"
        "class Doubled:\n"
        "    def setup(self, client, params):\n        self.client, self.number = client, params['number']\n"
        "    def once(self):\n        return self.client.submit(double, self.number, pure=False)\n"
        "    def check(self, future):\n        return future.result() == 42\n"
    )
    done = gpubench(*attached(foreign, "mine.py:Doubled", "--set", "number=21", "--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["workload"], found["status"], found["answer"]) == ("mine.py:Doubled", "ok", "ok")
    until(lambda: state(foreign) == before, "a cluster as it was")


@pytest.mark.system
def test_links_of_a_running_cluster_are_those_that_a_campaign_keeps(gpubench: Run, foreign: Path) -> None:
    done = gpubench(*attached(foreign, "message", "--set", "size=1KB", "--set", "round_trips=4", "--json"))
    assert done.returncode == 0, done.stderr
    links = json.loads(done.stdout)["moved"]["links"]
    assert len(links) == 2
    for row in links:
        assert row["round_trip_s"]["min"] <= row["round_trip_s"]["median"] <= row["round_trip_s"]["max"]
        assert len(row["params_id"]) == 12
        assert "trips_s" not in row


@pytest.mark.system
def test_ctrl_c_leaves_nothing_on_a_running_cluster(tmp_path: Path, foreign: Path) -> None:
    before = state(foreign)
    front = Front(tmp_path, *attached(foreign, "tasks", "--set", "count=20", "--reps", "100000"))
    until(lambda: list(tmp_path.glob("outputs/*/samples.jsonl")), "the first sample")
    front.kill(SIGINT)
    assert front.end() == 130
    assert "nothing is left on the cluster" in front.output
    until(lambda: state(foreign) == before, "a cluster as it was")


def test_a_client_that_has_to_be_killed_may_have_left_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = tmp_path / "python"
    deaf.write_text('#!/bin/bash\ntrap "" TERM\nkill -INT "$PPID"\nsleep 600\n')
    deaf.chmod(0o755)
    monkeypatch.setattr(attach, "STOP_S", 0.5)
    with pytest.raises(InterruptedByUserError) as caught:
        attach.SubprocessClient(tmp_path, deaf, {}, "attach").ask("{}", "answer.json", 60.0, str)
    assert str(caught.value) == (
        "interrupted by SIGINT; the client did not end within 0.5 s and was killed: the workers may still have its "
        "code and data; restart the workers before you measure again"
    )


@pytest.mark.system
def test_a_cluster_that_does_not_fit_is_refused_with_its_reason(gpubench: Run, tmp_path: Path, foreign: Path) -> None:
    done = gpubench(*attached(foreign, "merge", "--set", "rows_per_worker=1e9"))
    assert done.returncode == 6
    assert "doesn't fit" in one_line(done)
    assert not list((tmp_path / "outputs").iterdir())
