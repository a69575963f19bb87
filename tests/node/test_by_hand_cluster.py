"""A real Dask cluster whose roles were started by hand, and what a run's client says of a cluster that is wrong."""

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.node import speed
from gpubench.node.client import ClientOutcome, _measure_all, by_place
from gpubench.node.spec import Deadlines, WorkloadSpec
from gpubench.node.workload_limits import describe_error
from gpubench.node.workloads.base import WorkloadContext
from tests.node.runners import until
from tests.node.specs_by_hand import node_half, quiet_environment, run_spec, write_campaign
from tests.workloads.running import complete

pytestmark = pytest.mark.integration

ARRAY = WorkloadSpec("transpose-sum", "dask", {"size": 200, "chunk": 100}, reps=1, warmup=0, timeout_s=300.0)
TASKS = WorkloadSpec("tasks", "dask", complete("tasks", {"count": 3}), reps=1, warmup=0, timeout_s=300.0)
SPEC = run_spec(nodes=1, workers_per_node=2, workloads=[TASKS, ARRAY], deadlines=Deadlines(start_s=120.0))


@dataclasses.dataclass
class Cluster:
    """Processes by role, and where the scheduler is."""

    directory: Path
    address: str
    processes: list[subprocess.Popen[bytes]]
    run: Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("by-hand")
    write_campaign(directory, SPEC)
    processes: list[subprocess.Popen[bytes]] = []

    def run(*words: str, cwd: Path = directory) -> subprocess.Popen[bytes]:
        with (directory / f"{len(processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", str(directory / "node.pyz"), "run", *words],
                cwd=cwd,
                env=quiet_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        processes.append(process)
        return process

    file = directory / "scheduler.json"
    run("--role", "scheduler", "--interface", "lo", "--scheduler-file", str(file))
    common = ("--role", "worker", "--interface", "lo", "--nthreads", "2", "--memory-limit", "1GiB", "--device", "cpu")
    until(lambda: file.exists() and file.read_text().endswith("}"))
    address = json.loads(file.read_text())["address"]
    run(*common, "--scheduler-file", str(file), "--name", "w0", "--local-directory", str(directory / "w0"))
    run(*common, "--address", address, "--name", "w1", "--death-timeout", "60")
    try:
        yield Cluster(directory, address, processes, run)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(60)


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[Any]:
    import distributed

    with distributed.Client(cluster.address, timeout=60) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


def listening(pid: int) -> set[str]:
    """Addresses (as the kernel writes them) on which the process accepts TCP connections."""
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # files are opened and closed meanwhile; listeners stay
            links.append(str(path.readlink()))
    sockets = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                found.add(words[1].partition(":")[0])
    return found


def test_workers_by_hand_are_what_their_options_said(client: Any, cluster: Cluster) -> None:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    assert {(facts["name"], facts["nthreads"], facts["memory_limit"]) for facts in workers.values()} == {
        ("w0", 2, 1024**3),
        ("w1", 2, 1024**3),
    }
    assert str(cluster.directory / "w0") in {
        facts["local_directory"].split("/dask-scratch-space")[0] for facts in workers.values()
    }


def test_every_listener_of_scheduler_and_workers_is_on_the_named_interface_only(client: Any, cluster: Cluster) -> None:
    for process in cluster.processes[:3]:
        assert listening(process.pid) == {"0100007F"}


def workers_of(client: Any) -> list[str]:
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def outcome_of(client: Any, directory: Path, workers: list[str], **changes: Any) -> ClientOutcome:
    """Workloads have limits of their own, on the same clock as those of the tests."""
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    context, outcome = WorkloadContext(client, workers, 2, "cpu", "tcp"), ClientOutcome()
    try:
        _measure_all(context, dataclasses.replace(SPEC, **changes), outcome, directory, None, probes=[])
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
    return outcome


def test_bytes_over_another_protocol_fail_the_workload_and_skip_what_follows(client: Any, tmp_path: Path) -> None:
    workloads = [TASKS, ARRAY, dataclasses.replace(TASKS, reps=2)]
    outcome = outcome_of(client, tmp_path, workers_of(client), protocol="tls", workloads=workloads)
    assert outcome.error.endswith("speaks tcp, planned tls (protocol tls)")
    assert [(record.workload, record.status) for record in outcome.workloads] == [
        ("tasks", "ok"),
        ("transpose-sum", "failed"),
        ("tasks", "skipped"),
    ]
    assert outcome.workloads[1].reason == outcome.error
    assert outcome.workloads[2].reason == "after the failure of transpose-sum"


def test_an_error_in_the_client_is_the_reason_and_its_traceback_is_in_the_log(
    client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = WorkloadSpec("weak-array-create", "dask", complete("weak-array-create", {"problem_size": 1}), 1, 0, 300.0)
    outcome = outcome_of(client, tmp_path, workers_of(client), workloads=[small])
    assert outcome.workloads[0].reason == "ValueError: weak scaling needs a problem_size of at least 2, not 1"
    logged = capsys.readouterr().err.splitlines()
    assert (logged[0], logged[-1]) == ("Traceback (most recent call last):", outcome.workloads[0].reason)


def test_the_reason_of_a_group_of_errors_is_its_first_one() -> None:
    group = ExceptionGroup("unhandled errors", [ExceptionGroup("inner", [TypeError("no scalar\nmore"), OSError()])])
    assert describe_error(group) == "TypeError: no scalar"


def measured(cluster: Cluster, directory: Path, **changes: Any) -> dict[str, Any]:
    """What a client with this spec leaves for its supervisor."""
    path = directory / "spec.json"
    path.write_text(dataclasses.replace(SPEC, **changes).dump())
    words = ("--spec", str(path), "--role", "client", "--address", cluster.address, "--run-dir", str(directory))
    assert cluster.run(*words, cwd=directory).wait(300) == 0
    result: dict[str, Any] = json.loads((directory / "client-result.json").read_text())
    return result


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        # It is also the limit of the client's own connection, which a busy machine may let wait.
        ({"workers_per_node": 3, "deadlines": Deadlines(start_s=4.0)}, "2 of 3 workers connected within 4 s"),
        ({"workers_per_node": 1}, "2 workers connected, 1 planned"),
        ({"node_half": "0" * 64}, "imported node half"),
    ],
)
def test_in_another_cluster_than_the_planned_one_nothing_is_measured_and_no_workload_is_forgotten(
    cluster: Cluster, tmp_path: Path, changes: dict[str, Any], error: str
) -> None:
    result = measured(cluster, tmp_path, **changes)
    assert error in result["error"]
    assert [(item["workload"], item["status"], item["reason"]) for item in result["workloads"]] == [
        ("tasks", "failed", result["error"]),
        ("transpose-sum", "failed", result["error"]),
    ]
    assert not (tmp_path / "samples.jsonl").exists()


def test_a_worker_that_joins_while_workloads_run_fails_the_run(client: Any, cluster: Cluster, tmp_path: Path) -> None:
    workers = workers_of(client)
    late = cluster.run(
        "--role", "worker", "--interface", "lo", "--address", cluster.address, "--name", "late", "--device", "cpu"
    )
    try:
        client.wait_for_workers(3, timeout=60)
        (address,) = set(workers_of(client)) - set(workers)
        outcome = outcome_of(client, tmp_path, workers)
    finally:
        late.kill()
        until(lambda: len(workers_of(client)) == 2)
    assert outcome.error == f"the cluster changed while it was measured: {address} joined"
    assert [(record.workload, record.status, record.reason) for record in outcome.workloads] == [
        ("tasks", "failed", outcome.error),
        ("transpose-sum", "skipped", "after the failure of tasks"),
    ]
    assert not (tmp_path / "samples.jsonl").exists()


def test_workers_come_by_node_and_gpu_whatever_their_ports_are() -> None:
    """Else each run would measure messages between other GPUs of a node."""
    names = ["worker-0-0-0", "worker-0-0-2", "worker-0-0-10", "worker-2-0-1", "worker-10-0-0"]
    answers = {f"ucxx://10.0.0.1:{port}": {"name": name} for port, name in zip((5, 3, 4, 1, 2), names, strict=True)}
    found = by_place(dict(sorted(answers.items())))
    assert [(worker["name"], worker["address"]) for worker in found] == [
        (name, f"ucxx://10.0.0.1:{port}") for name, port in zip(names, (5, 3, 4, 1, 2), strict=True)
    ]


def test_every_worker_is_probed_before_and_after_and_warnings_are_what_the_figures_say(
    cluster: Cluster, tmp_path: Path
) -> None:
    result = measured(cluster, tmp_path, workloads=[TASKS], node_half=node_half())
    assert result["error"] == ""
    rows = result["speed"]
    assert {row["name"] for row in rows} == {"w0", "w1"}
    assert {len(figures) for row in rows for figures in (row["wall_s"], row["cpu_s"])} == {2}
    probes = [
        {row["worker"]: {**row, "wall_s": row["wall_s"][number], "cpu_s": row["cpu_s"][number]} for row in rows}
        for number in range(2)
    ]
    assert result["warnings"] == speed.warnings(probes)
