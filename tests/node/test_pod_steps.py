"""The containers of pods as processes, each with what Kubernetes would tell it; the name of rank 0 is localhost."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import pytest

from gpubench import resources
from gpubench.node import rendezvous
from gpubench.node.control_channel import Connection, ControlServer
from gpubench.node.rendezvous import RendezvousTimeoutError
from gpubench.node.spec.log_transport import decode
from gpubench.node.stop import StopRequest
from gpubench.render.node_half import pack
from tests.conftest import free_port
from tests.node.runners import NeverAsked
from tests.node.specs_by_hand import RUN, node_half, run_spec

NEVER = cast("StopRequest", NeverAsked())


class Pods:
    """Pods of one job, a directory each."""

    def __init__(self, directory: Path, nodes: int, name: str = "localhost") -> None:
        self.directory = directory
        self.name = name
        self.spec = directory / "spec.json"
        self.spec.write_text(run_spec(nodes=nodes, interface="lo", node_half=node_half()).dump())
        (directory / "node.pyz").write_bytes(pack(resources.node_half()))
        self.port = free_port()

    def start(self, rank: int, *words: str) -> subprocess.Popen[str]:
        pod = self.directory / f"pod{rank}"
        pod.mkdir(exist_ok=True)
        env = {
            **os.environ,
            "GPUBENCH_POD": str(pod),
            "OUTDIR": str(pod / "campaign"),
            "SCRATCHDIR": str(pod),
            "GPUBENCH_RENDEZVOUS": f"{self.name}:{self.port}",
            "GPUBENCH_JOB_TOKEN": "secret",
            "JOB_COMPLETION_INDEX": str(rank),
        }
        return subprocess.Popen(
            [sys.executable, "-I", str(self.directory / "node.pyz"), "pod", *words],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def arrive(self, rank: int, deadline_s: float) -> subprocess.Popen[str]:
        return self.start(rank, "arrive", "--spec", str(self.spec), "--deadline", str(deadline_s))


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


def test_pods_go_on_when_all_are_there_whoever_comes_first(tmp_path: Path) -> None:
    pods = Pods(tmp_path, 3)
    late = [pods.arrive(rank, 60) for rank in (2, 1, 0)]
    assert [end(one)[0] for one in late] == [0, 0, 0]
    assert [end(pods.start(rank, "end"))[0] for rank in (0, 1)] == [0, 0]


def test_nodes_meet_though_rank_0s_name_is_not_the_address_of_the_runs_interface(tmp_path: Path) -> None:
    """A Service has a pod's first address, or that of its node; ``interface`` may be a second one of Multus."""
    pods = Pods(tmp_path, 2, name="127.0.0.2")
    assert [end(step)[0] for step in [pods.arrive(rank, 20) for rank in (1, 0)]] == [0, 0]
    runs = [pods.start(rank, "run", "--spec", str(pods.spec)) for rank in (1, 0)]
    _, (_, log, _) = [end(run) for run in runs]
    (contents,) = decode(log.splitlines())[0].values()
    record = json.loads(contents.files["run.json"])
    assert (record["status"], record["reason"], record["nodes"]) == ("ok", "", 2)


def test_rank_0_skips_every_run_when_a_pod_does_not_come_and_alone_fails_the_job(tmp_path: Path) -> None:
    pods = Pods(tmp_path, 2)
    assert end(pods.arrive(0, 1))[0] == 0
    code, out, _ = end(pods.start(0, "run", "--spec", str(pods.spec)))
    assert code == 0
    found, _ = decode(out.splitlines())
    record = json.loads(found[f"{RUN}-1"].files["run.json"])
    assert record["status"] == "skipped"
    where = f"or could not reach port {pods.port} here"
    assert record["reason"] == f"the pod of node rank 1 did not start within 1 s, {where}"
    code, again, _ = end(pods.start(0, "end"))
    assert code == 40
    assert decode(again.splitlines())[0] == found  # once more: the first lines may have been turned over


def test_a_node_that_finds_no_rank_0_waits_for_it_once_and_fails_the_job(tmp_path: Path) -> None:
    """Seen on Kubernetes 1.36.2: without its image rank 0 would hold the job and all nodes for limits.job and more."""
    pods = Pods(tmp_path, 2)
    steps = [("arrive", "--spec", str(pods.spec), "--deadline", "1"), ("run", "--spec", str(pods.spec)), ("end",)]
    ended = [end(pods.start(1, *words)) for words in steps]
    assert [code for code, _, _ in ended] == [0, 0, 40]
    assert all("rank 0 did not answer as localhost" in said for _, _, said in ended)


def test_a_node_that_came_before_rank_0_hears_of_it_that_another_is_missing_and_does_not_fail_the_job(
    tmp_path: Path,
) -> None:
    """Else Kubernetes ends rank 0's pod before the lines of all runs are in its log."""
    pods = Pods(tmp_path, 3)
    with socket.create_server(("localhost", pods.port)) as early:
        first = pods.arrive(1, 3)
        early.accept()[0].close()  # its time runs
    assert [end(one)[0] for one in (first, pods.arrive(0, 3))] == [0, 0]
    assert "another pod of the job did not start in time" in (tmp_path / "pod1" / "state.json").read_text()
    assert [end(pods.start(rank, "end"))[0] for rank in (1, 0)] == [0, 40]


def test_a_node_that_is_out_tells_rank_0_once_so_that_nobody_waits_for_it(tmp_path: Path) -> None:
    pods = Pods(tmp_path, 2)
    (tmp_path / "pod1").mkdir()
    (tmp_path / "pod1" / "state.json").write_text(json.dumps({"code": 40, "reason": "the node isn't clean"}))
    server = ControlServer("127.0.0.1", "secret", port=pods.port, order=run_spec().order)
    server.greeting = {"kind": "facts"}
    process = pods.start(1, "run", "--spec", str(pods.spec))
    heard: list[dict[str, object]] = []
    until = time.monotonic() + 60
    while "stopped" not in [message["kind"] for message in heard]:
        assert time.monotonic() < until, heard
        heard += server.poll(0.05)
    server.close()
    assert [(message["kind"], message.get("reason")) for message in heard] == [
        ("hello", None),
        ("stopped", "the node isn't clean"),
    ]
    assert end(process)[0] == 0
    assert end(pods.start(1, "run", "--spec", str(pods.spec)))[0] == 0  # rank 0 knows


def test_a_step_without_its_directory_is_a_usage_error(tmp_path: Path) -> None:
    pods = Pods(tmp_path, 1)
    words = [sys.executable, "-I", str(tmp_path / "node.pyz"), "pod", "run", "--spec", str(pods.spec)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "GPUBENCH_POD" in done.stderr


@pytest.fixture
def server() -> ControlServer:
    return ControlServer("127.0.0.1", "secret", order=1)


def meet(server: ControlServer, order: int, *, token: str = "secret", for_s: float = 0.5) -> object:
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            server.poll(0.02)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        deadline = time.monotonic() + for_s
        return rendezvous.meet((server.host, server.port), token, deadline, NEVER, rank=1, order=order, facts={})
    finally:
        over.set()
        thread.join()
        server.close()


def test_who_comes_to_the_same_run_is_let_in_and_what_came_with_the_welcome_is_not_lost(server: ControlServer) -> None:
    server.greeting = {"kind": "facts"}
    line = meet(server, 1, for_s=60)
    assert isinstance(line, Connection)
    assert list(server.connections) == [1]
    line.put_back([{"kind": "scheduler", "address": "tcp://n1:1"}])
    assert line.receive() == [{"kind": "scheduler", "address": "tcp://n1:1"}]
    assert line.receive() == []
    line.close()


def test_who_is_still_at_an_earlier_run_hears_that_it_is_over(server: ControlServer) -> None:
    assert meet(server, 0, for_s=60) is None
    assert not server.connections


@pytest.mark.parametrize(("order", "token"), [(2, "secret"), (1, "of another job")])
def test_who_is_ahead_or_of_another_job_waits_until_the_deadline(server: ControlServer, order: int, token: str) -> None:
    server.greeting = {"kind": "facts"}
    with pytest.raises(
        RendezvousTimeoutError, match=r"did not answer as 127\.0\.0\.1:[0-9]+ in time: it closed the connection"
    ):
        meet(server, order, token=token)


def test_a_name_that_never_resolves_is_told_at_the_deadline() -> None:
    with pytest.raises(RendezvousTimeoutError, match=r"job-0\.nowhere\.invalid:80 in time: .*[Nn]ame"):
        rendezvous.meet(("job-0.nowhere.invalid", 80), "t", time.monotonic(), NEVER, rank=1, order=0, facts={})
