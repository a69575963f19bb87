"""Supervisors of one and of two nodes, for real, over a stand-in for dask that starts fast and does nothing.

What dask's own processes do is tested with dask; here it is about who notices what, and what stands in the record.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.admission import VARIABLE, environment
from gpubench.node.spec import Deadlines
from tests.cli.campaigns import files_with
from tests.conftest import need
from tests.node.dask_by_hand import write_dask
from tests.node.runners import TOKEN, Runner, finish, until
from tests.node.specs_by_hand import RUN

Start = Callable[..., Runner]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Start]:
    stand_in = write_dask(tmp_path / "stand-in")
    runners: list[Runner] = []

    def start(
        ranks: int = 1, env: dict[str, str] | None = None, *, scheduler_only: bool = True, **changes: Any
    ) -> Runner:
        """Supervisors of all ranks and of a scheduler elsewhere, once every process of the run stands."""
        directory = tmp_path / "campaign"
        directory.mkdir()
        spec_env = {"PYTHONPATH": str(stand_in), **(env or {})}
        runner = Runner([sys.executable, "-I"], directory, **{"nodes": ranks, "env": spec_env, **changes})
        runners.append(runner)
        for rank in range(ranks):
            runner.start("--rank", str(rank), GPUBENCH_STOP_AT_EOF="the front end is gone")
        if scheduler_only and len(runner.spec.ranks) > ranks:
            runner.start("--role", "scheduler", GPUBENCH_STOP_AT_EOF="the front end is gone")
        if "CLIENT" not in spec_env and spec_env.get("IMPORT") != "hangs":
            names = ["scheduler", "client", *(f"worker-{rank}-0" for rank in range(ranks))]
            until(lambda: all(stands(directory, name) for name in names) or ended(runner))
            assert not ended(runner), [path.read_text() for path in directory.glob("runs/*/run.json")]
        return runner

    yield start
    for runner in runners:
        runner.kill()


def ended(runner: Runner) -> bool:
    return any(process.poll() is not None for process in runner.processes)


def stands(directory: Path, name: str) -> bool:
    return any("stands" in path.read_text() for path in directory.glob(f"gpubench-{RUN}-*/{name}.log"))


def pid(runner: Runner, role: str) -> int:
    """Process id of a role, from the process table."""
    for found in runner.living():
        words = Path(f"/proc/{found}/cmdline").read_bytes().split(b"\0")
        if role.encode() in words:
            return found
    raise AssertionError(f"no {role}")


def codes(runner: Runner) -> list[int]:
    """Exit codes of all supervisors; nothing of the run lives or lies around any more."""
    for process in runner.processes:
        process.wait(150)  # before their input is closed: that would be the end of the front end
    ended = [finish(process)[0] for process in runner.processes]
    assert runner.living() == {}
    assert not list(runner.directory.glob("gpubench-*"))
    assert runner.left() == []
    return ended


@pytest.mark.parametrize("name", ["scheduler", "worker-1-0"])
def test_a_process_that_dies_on_any_node_fails_the_run_with_cause_and_last_lines(run: Start, name: str) -> None:
    runner = run(ranks=2)
    os.kill(pid(runner, name), signal.SIGKILL)
    assert codes(runner) == [0, 0]
    record = runner.record()
    assert (record.status, record.reason) == ("failed", f"{name} ended: killed by SIGKILL")
    assert record.cause["process"] == name
    assert record.cause["last_lines"][-1].endswith(" stands")
    assert len(record.hosts) == 2
    assert [(item.status, item.reason) for item in record.workloads] == [("failed", record.reason)]
    with zipfile.ZipFile(runner.run_dir() / "logs.zip") as logs:
        assert {"rank0/scheduler.log", "rank0/worker-0-0.log", "rank1/worker-1-0.log"} <= set(logs.namelist())
    assert [node["rank"] for node in runner.provenance()["nodes"]] == [0, 1]


def test_a_node_that_is_silent_at_the_end_is_named_with_what_it_said_when_it_joined(run: Start) -> None:
    runner = run(ranks=2, deadlines=Deadlines(start_s=120.0, stop_s=1.0, silence_s=120.0))
    runner.processes[1].send_signal(signal.SIGSTOP)
    os.kill(pid(runner, "scheduler"), signal.SIGKILL)
    assert runner.processes[0].wait(150) == 0
    record = runner.record()
    assert (record.status, record.reason) == ("failed", "scheduler ended: killed by SIGKILL")
    assert record.warnings == ["no last report of rank 1: logs, load and environment there aren't recorded"]
    assert len(record.hosts) == 2
    told, joined = runner.provenance()["nodes"]
    assert (told["rank"], joined["rank"], joined["load"], joined["kernel"]) == (0, 1, [], told["kernel"])
    assert "environment" not in joined
    runner.processes[1].send_signal(signal.SIGCONT)
    until(lambda: runner.living() == {})


def test_no_file_of_a_run_holds_the_secrets_of_its_job_which_later_runs_share(run: Start) -> None:
    runner = run(ranks=2)
    os.kill(pid(runner, "worker-1-0"), signal.SIGKILL)
    assert codes(runner) == [0, 0]
    assert files_with(RUN, runner.run_dir())
    for secret in (TOKEN, environment("tcp", TOKEN)[VARIABLE].partition(":")[2]):
        assert files_with(secret, runner.run_dir()) == []


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def log(runner: Runner, name: str) -> str:
    return "".join(path.read_text() for path in runner.directory.glob(f"gpubench-*/{name}.log"))


def until_logged(runner: Runner, name: str, text: str) -> None:
    """Wait for a process's words: it stands in the process table before it writes them."""
    until(lambda: log(runner, name) == text)


def test_the_processes_of_a_node_are_forks_each_a_child_of_the_supervisor_with_its_own_session_log_and_title(
    run: Start,
) -> None:
    runner = run(workers_per_node=2)
    found = {name: pid(runner, name) for name in ("scheduler", "worker-0-0", "worker-0-1", "client")}
    assert {parent(process) for process in found.values()} == {runner.processes[0].pid}
    assert {os.getsid(process) for process in found.values()} == set(found.values())
    assert sorted(runner.living()) == sorted(found.values())  # what forked them is gone
    assert Path(f"/proc/{found['worker-0-1']}/comm").read_text() == "worker-0-1\n"
    for name in ("worker-0-0", "worker-0-1"):
        until_logged(runner, name, "--role forks\nworker stands\n")
    os.kill(found["worker-0-1"], signal.SIGKILL)
    assert codes(runner) == [0]
    assert runner.record().reason == "worker-0-1 ended: killed by SIGKILL"


def test_where_an_import_starts_a_thread_no_process_is_a_fork(run: Start) -> None:
    runner = run(env={"IMPORT": "thread"})
    until_logged(runner, "worker-0-0", "--role worker\nworker stands\n")
    assert parent(pid(runner, "worker-0-0")) == runner.processes[0].pid
    os.kill(pid(runner, "client"), signal.SIGKILL)
    assert codes(runner) == [0]
    assert runner.record().reason == "the client ended: killed by SIGKILL"


def test_a_process_that_dies_before_it_forks_fails_the_run(run: Start) -> None:
    runner = run(env={"IMPORT": "hangs"})
    until(lambda: log(runner, "forks") == "imports\n")
    os.kill(pid(runner, "forks"), signal.SIGKILL)
    assert codes(runner) == [0]
    record = runner.record()
    assert (record.status, record.reason) == ("failed", "the scheduler ended while starting: exit code 1: imports")
    assert record.cause["last_lines"] == ["imports"]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_ends_before_its_processes_are_forked_leaves_none(run: Start, by: signal.Signals) -> None:
    runner = run(env={"IMPORT": "hangs"})
    until(lambda: log(runner, "forks") == "imports\n")
    runner.processes[0].send_signal(by)
    assert runner.processes[0].wait(150) == (40 if by is signal.SIGTERM else -by)
    until(lambda: runner.living() == {})


def test_a_client_that_fails_fails_the_run_with_its_last_lines(run: Start) -> None:
    runner = run(env={"CLIENT": "fails"})
    assert codes(runner) == [0]
    record = runner.record()
    assert (record.status, record.reason) == ("failed", "the client ended: exit code 40: gpubench run: nobody there")
    assert record.cause["last_lines"] == ["client stands", "gpubench run: nobody there"]


def test_a_run_whose_client_met_a_disks_fault_is_lost_also_where_the_disk_works_again(run: Start) -> None:
    runner = run(env={"CLIENT": "can't write"})
    assert codes(runner) == [0]
    record = runner.record()
    said = "exit code 74: gpubench run: [Errno 122] Disk quota exceeded, and its node can't write its files"
    assert (record.status, record.reason) == ("lost", f"the client ended: {said}")


def test_a_node_whose_supervisor_is_killed_is_lost_and_its_workers_with_it(run: Start) -> None:
    runner = run(ranks=2)
    runner.processes[1].kill()
    assert runner.processes[0].wait(150) == 0
    record = runner.record()
    assert (record.status, record.reason) == ("lost", "lost node rank 1")
    until(lambda: runner.living() == {})


def test_a_killed_rank_0_leaves_no_record_and_no_process_on_any_node(run: Start) -> None:
    runner = run(ranks=2)
    runner.processes[0].kill()
    assert runner.processes[1].wait(150) == 0
    until(lambda: runner.living() == {})
    assert not (runner.run_dir() / "run.json").exists()


@pytest.mark.parametrize("rank", [0, 1])
def test_an_interruption_of_any_node_makes_the_run_skipped_and_never_failed(run: Start, rank: int) -> None:
    runner = run(ranks=2)
    runner.processes[rank].terminate()
    assert codes(runner) == [[40, 0], [40, 40]][rank]
    record = runner.record()
    reason = "interrupted by SIGTERM" if rank == 0 else "node rank 1: interrupted by SIGTERM"
    assert (record.status, record.reason) == ("skipped", reason)
    assert [item.status for item in record.workloads] == ["skipped"]


def test_the_end_of_the_front_end_is_an_interruption_whoever_notices_it_first(run: Start) -> None:
    runner = run(ranks=2)
    for process in reversed(runner.processes):
        assert process.stdin
        process.stdin.close()
        process.stdin = None
    assert codes(runner)[0] == 40
    record = runner.record()
    assert record.status == "skipped"
    assert record.reason in ("the front end is gone", "node rank 1: the front end is gone")


def test_the_rendezvous_is_private_and_leads_to_a_listener_on_the_interface_of_the_job_only(run: Start) -> None:
    runner = run(ranks=2)
    (published,) = (runner.directory / "runs").glob(".rendezvous-*")
    assert published.name.startswith(f".rendezvous-{RUN}-")
    assert TOKEN not in published.name  # the token: whoever may list the directory would get into the run
    assert published.stat().st_mode & 0o777 == 0o600
    host, port = json.loads(published.read_text())["facts"]["server"]
    assert host == "127.0.0.1"
    listening = {line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if line.split()[3] == "0A"}
    assert f"0100007F:{port:04X}" in listening
    assert f"00000000:{port:04X}" not in listening
    for process in runner.processes:
        process.terminate()
    # Rank 1 may still have been starting; where it finds the record of rank 0, the run is over, and it ends well.
    assert codes(runner) in ([40, 40], [40, 0])
    assert runner.record().status == "skipped"


SCHEDULER_ONLY_RANK = [("launch-node", "rank0"), ("launch-node", "launch-node"), ("own-set", "rank0")]


@pytest.mark.parametrize(("scheduler", "client"), SCHEDULER_ONLY_RANK)
def test_a_scheduler_on_no_node_that_dies_fails_the_run_with_cause_and_last_lines(
    run: Start, scheduler: str, client: str
) -> None:
    runner = run(2, scheduler_on=scheduler, client_on=client)
    os.kill(pid(runner, "scheduler"), signal.SIGKILL)
    assert codes(runner) == [0, 0, 0]
    record = runner.record()
    assert (record.status, record.reason) == ("failed", "scheduler ended: killed by SIGKILL")
    assert record.cause["last_lines"] == ["scheduler stands"]
    assert record.cause.get("rank") == (None if client == "launch-node" else 2)
    assert len(record.hosts) == 3
    with zipfile.ZipFile(runner.run_dir() / "logs.zip") as logs:
        assert {"rank0/worker-0-0.log", "rank1/worker-1-0.log", "rank2/scheduler.log"} <= set(logs.namelist())
        where = 2 if client == "launch-node" else 0
        assert f"rank{where}/client.log" in logs.namelist()


@pytest.mark.parametrize(("scheduler", "client"), SCHEDULER_ONLY_RANK[:2])
def test_the_end_of_a_supervisor_on_the_launch_node_ends_the_run_everywhere(
    run: Start, scheduler: str, client: str
) -> None:
    runner = run(2, scheduler_on=scheduler, client_on=client)
    runner.processes[2].kill()
    ended = [process.wait(150) for process in runner.processes]
    assert runner.living() == {}
    if client == "launch-node":  # nobody is left who could write a record: the run is lost
        assert not (runner.run_dir() / "run.json").exists()
    else:
        assert ended == [0, 0, -signal.SIGKILL]
        assert (runner.record().status, runner.record().reason) == ("lost", "lost node rank 2 (launch-node)")


@pytest.mark.parametrize(("scheduler", "client"), SCHEDULER_ONLY_RANK)
def test_a_signal_to_the_supervisor_of_a_scheduler_elsewhere_ends_the_run_in_order(
    run: Start, scheduler: str, client: str
) -> None:
    runner = run(2, scheduler_on=scheduler, client_on=client)
    runner.processes[2].terminate()
    ended = codes(runner)
    assert ended[2] == 40
    said = "interrupted by SIGTERM" if client == "launch-node" else f"node rank 2 ({scheduler}): interrupted by SIGTERM"
    assert (runner.record().status, runner.record().reason) == ("skipped", said)


def test_a_scheduler_elsewhere_whose_supervisor_never_comes_fails_the_run(run: Start) -> None:
    short = Deadlines(start_s=2.0)
    runner = run(1, env={"CLIENT": "waits"}, scheduler_only=False, scheduler_on="launch-node", deadlines=short)
    assert codes(runner) == [0]
    assert (runner.record().status, runner.record().reason) == ("failed", "the scheduler did not start in time")


def test_a_role_that_the_spec_has_not_placed_elsewhere_is_refused(tmp_path: Path) -> None:
    runner = Runner([sys.executable, "-I"], tmp_path)
    code, said = runner.run("--role", "scheduler")
    assert code == 2
    assert "the run has its scheduler on rank0" in said


@pytest.mark.system
@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_supervisor_to_which_nothing_happens_sleeps(run: Start, rank: int, tmp_path: Path) -> None:
    need(bool(shutil.which("strace")), "strace (requirements/system.sh)")
    runner = run(2)
    log = tmp_path / "strace.log"
    words = ["strace", "-qq", "-o", str(log), "-e", "trace=all", "-p", str(runner.processes[rank].pid)]
    with subprocess.Popen(words) as strace:
        until(lambda: log.exists() and log.read_text().count("sendto(") > 4)  # a heartbeat each time
        strace.terminate()
    calls = log.read_text().split("sendto(")[2:5]  # from one to the next, less what the start may still do
    assert all(len(between.splitlines()) < 80 for between in calls), log.read_text()
    assert "scheduler.json" not in log.read_text()
