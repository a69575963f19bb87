"""``node.pyz cluster``: one node of a standing cluster, from the job script.

The head runs the scheduler, serves requests, and keeps the state until the job ends; the other nodes follow it.
"""

import contextlib
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from gpubench.node import rendezvous
from gpubench.node.build import WrongImageError, check_build
from gpubench.node.cluster_state import ClusterStateFile
from gpubench.node.control_channel import Connection, ControlServer, Message, join
from gpubench.node.gpu import resolve
from gpubench.node.net import interface_address
from gpubench.node.node import NotCleanError, RunNode, unused_segments
from gpubench.node.process import Child, command
from gpubench.node.rank import RankError, find_rank
from gpubench.node.rendezvous import RendezvousTimeoutError
from gpubench.node.spec import RunSpec
from gpubench.node.spec.cluster import GONE, JOINED, REQUESTS, RETIRED, SCHEDULER_FILE, TOKEN_FILE, ClusterSpec
from gpubench.node.spec.run import RANK0
from gpubench.node.stop import EXIT_NODE, EXIT_OK, IDLE_S, StoppedError, StopRequest
from gpubench.node.workloads import clock
from gpubench.node.workloads.clock import poll_until
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, end_marked_below
from gpubench.node.writer.atomic import write_atomic

TICK_S = 0.1
REQUEST_S = 0.5
END_VARIABLE = "GPUBENCH_END"


class ClusterEndedError(Exception):
    """The cluster can't go on; the message says why."""


def time_left() -> float:
    """Seconds until the job's end, which its script exported; infinite without one."""
    end = os.environ.get(END_VARIABLE, "")
    return float(end) - clock.now() if end.isdigit() else float("inf")


class ClusterHead:
    """Supervises the cluster from its first process to its last."""

    def __init__(self, node: RunNode, cluster: ClusterSpec, directory: Path, token: str, stop: StopRequest) -> None:
        self.node, self.spec, self.cluster = node, node.spec, cluster
        self.directory, self.token, self.stop = directory, token, stop
        self.state_file = ClusterStateFile(directory, cluster.cluster)
        self.rendezvous = rendezvous.path_for(directory, cluster.cluster, token)
        self.server: Optional[ControlServer] = None
        self._began = time.monotonic()
        self._registry = node.scratch / "registry.json"
        self._scheduler_only = not node.spec.has_workers(node.rank)
        self._retiring: Optional[Tuple[Child, List[int], Path, Optional[Path]]] = None
        self._waiting: List[Tuple[List[int], Optional[Path]]] = []
        self._dead: List[Child] = []
        self._leaving: Set[int] = set()
        self._interrupted: Set[int] = set()
        self._asked = 0.0

    def run(self) -> str:
        """Run until it is asked to end or its time is over; returns the reason.

        Raises:
            ClusterEndedError: the scheduler died, or the job's own nodes didn't all come.
        """
        server = self.server = ControlServer(interface_address(self.spec.interface), self.token)
        if not self._scheduler_only:
            planned = self.spec.workers_per_node
            self.state_file.joined(self.node.rank, self.cluster.job, str(self.node.facts["host"]), planned, 0.0)
        self.state_file.write()
        file = self.node.scratch / SCHEDULER_FILE
        words = ("--scheduler-file", str(file), "--registry", str(self._registry))
        self.node.start([self.node.planned("scheduler", "scheduler", *words), *self.node.workers()])
        scheduler = self.node.children[0]
        address = self._address(scheduler)
        self.node.tell_address(address)
        rendezvous.publish(self.rendezvous, self.token, {"scheduler": address, "server": [server.host, server.port]})
        ready = False
        while True:
            self._tick(server, scheduler, REQUEST_S if ready and not self.node.starting() else TICK_S)
            if not ready and self.state_file.complete(self.cluster.job, self.spec.nodes):
                ready = True
                self._publish(file)
                self.state_file.ready(address)
            if not ready and time.monotonic() - self._began > self.spec.deadlines.start_s:
                raise ClusterEndedError(
                    f"{self.state_file.state.connected} of {self.spec.workers} workers connected within "
                    f"{self.spec.deadlines.start_s:g} s"
                )
            if ready and not any(self._state(rank) == JOINED for rank in range(self.spec.nodes)):
                raise ClusterEndedError("no node of the scheduler's own job is left")
            # A scheduler alone ends before its nodes leave it.
            if time_left() < self.spec.deadlines.stop_s * (2 if self._scheduler_only else 1):
                return "the job's time is over"
            if self.stop.asked():
                return str(self.stop.reason)

    def end(self, reason: str) -> None:
        """End every process on every node, and remove what was published."""
        for path in (self.directory / SCHEDULER_FILE, self.rendezvous):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        if self.server is not None:
            self.server.broadcast({"kind": "stop"})
        self.node.stop()
        if self.server is not None:
            deadline = time.monotonic() + self.spec.deadlines.stop_s
            while time.monotonic() < deadline and any(one.open for one in self.server.connections.values()):
                self.server.poll(TICK_S)
            self.server.close()
        self.state_file.end(reason)

    def _address(self, scheduler: Child) -> str:
        """The scheduler's, once it answers."""

        def started_or_ended() -> bool:
            self.stop.check()
            return bool(self.node.scheduler_address()) or scheduler.code is not None

        poll_until(started_or_ended, self._began + self.spec.deadlines.start_s, TICK_S)
        address = self.node.scheduler_address()
        if not address:
            raise ClusterEndedError(f"the scheduler didn't start: {scheduler.cause()['how']}")
        return address

    def _publish(self, file: Path) -> None:
        """The scheduler's own file with what a client needs beside the address."""
        plain = json.loads(file.read_text(encoding="utf-8"))
        text = json.dumps({**plain, "gpubench": self.cluster.connect}, indent=1)
        write_atomic(self.directory / SCHEDULER_FILE, text.encode("utf-8"), mode=0o600)

    def _tick(self, server: ControlServer, scheduler: Child, longest_s: float) -> None:
        self.stop.wait([server], longest_s)
        for message in server.poll(0):
            self._receive(server, message)
        for rank in server.gone(self.spec.deadlines.silence_s):
            server.forget(rank)
            if self._state(rank) == JOINED:
                self.state_file.left(rank, GONE)
                self.state_file.event(f"node rank {rank} no longer answers")
        if scheduler.code is not None:
            self.stop.check()
            raise ClusterEndedError(f"the scheduler ended: {scheduler.cause()['how']}")
        for child in self.node.children:
            if child.code is not None and child not in self._dead and child.name.startswith("worker-"):
                self._dead.append(child)
                self.state_file.event(f"{child.name} ended: {child.cause()['how']}", child.cause())
        self.state_file.count(_registered(self._registry))
        self._read_requests()
        self._retire(server)
        self.state_file.write()

    def _receive(self, server: ControlServer, message: Message) -> None:
        rank = int(message["rank"])
        if message["kind"] == "hello":
            facts = message["facts"]
            self.state_file.joined(rank, facts["job"], facts["host"], facts["planned"], facts["age_s"])
        elif message["kind"] == "died" and rank not in self._leaving:
            cause = message["cause"]
            self.state_file.event("{} ended: {}".format(cause["process"], cause["how"]), cause)
        elif message["kind"] == "leaving" and rank >= self.spec.nodes:  # the cluster ends with the head's own job
            self.state_file.event("node rank {} leaves: {}".format(rank, message["reason"]))
            self._waiting.append(([rank], None))
            if message["reason"] != NEARLY_OVER:
                self._interrupted.add(rank)
        elif message["kind"] == "final_report":
            self.state_file.left(rank, GONE if rank in self._interrupted else RETIRED)
            server.forget(rank)

    def _read_requests(self) -> None:
        if time.monotonic() - self._asked < REQUEST_S:
            return
        self._asked = time.monotonic()
        for path in sorted((self.directory / REQUESTS).glob("*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                asked = json.loads(path.read_text(encoding="utf-8"))
                if asked.get("stop"):
                    self.stop.reason = self.stop.reason or str(asked["stop"])
                else:
                    self._waiting.append(([int(rank) for rank in asked["retire"]], path.with_suffix(".answer")))
            path.unlink()

    def _retire(self, server: ControlServer) -> None:
        """Retire nodes one request at a time, because Dask moves data to workers that stay."""
        if self._retiring is None and self._waiting:
            ranks, told = self._waiting.pop(0)
            self._leaving.update(ranks)
            answer = self.node.scratch / "retired.json"
            with contextlib.suppress(FileNotFoundError):
                answer.unlink()
            words = ["--address", self.state_file.state.address, "--answer", str(answer), "--parent", str(os.getpid())]
            words += ["--ranks", ",".join(map(str, ranks))]
            child = Child("retire", command("retire", *words), self.node.env, self.node.scratch)
            self.node.children.append(child)
            self._retiring = (child, ranks, answer, told)
        if self._retiring is None or self._retiring[0].code is None:
            return
        child, ranks, answer, told = self._retiring
        self._retiring = None
        self.node.children.remove(child)
        said: Dict[str, Any] = {"error": f"retiring failed: {child.cause()['how']}"}
        with contextlib.suppress(OSError, ValueError):
            said = json.loads(answer.read_text(encoding="utf-8"))
        if not said.get("left") and "error" not in said:
            for rank in ranks:
                server.send(rank, {"kind": "stop"})
        else:
            self._leaving.difference_update(ranks)
        if told is not None:
            write_atomic(told, json.dumps(said).encode("utf-8"), mode=0o600)

    def _state(self, rank: int) -> str:
        return next((str(node["state"]) for node in self.state_file.state.nodes if node["rank"] == rank), GONE)


def _registered(path: Path) -> List[Dict[str, Any]]:
    """The registered workers, as the scheduler's preload last wrote them; none before its first write."""
    try:
        rows: List[Dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return rows


NEARLY_OVER = "the job's time is nearly over"
"""The reason of a node that leaves by itself; any other is a signal's, which nobody asked of this cluster."""
SCHEDULER_ONLY_RANK = -1
"""Rank of a supervisor that has the scheduler and runs on none of the nodes; further jobs continue the nodes' ranks."""


def run(
    spec_path: Path,
    rank: Optional[int],
    skip: str = "",
    *,
    scheduler_only: bool = False,
    lasts_s: Optional[float] = None,
) -> int:
    """Run this node's part of the cluster until it ends; ``scheduler_only``: a supervisor that has only the scheduler.

    Returns the exit code. ``lasts_s``: in a pod, where no script says when the job ends, seconds until its end. A node
    whose workers died is no failure in a pod, because Kubernetes would end every other pod of the job too.

    Raises:
        OSError: the token or the spec can't be read.
        RankError: the launcher names no rank, or the job has its scheduler on rank 0.
    """
    if lasts_s is not None:
        os.environ[END_VARIABLE] = str(int(clock.now() + lasts_s))
    cluster, spec = read(spec_path)
    directory = spec_path.parents[3]
    if skip:
        ClusterStateFile(directory, cluster.cluster).end(skip)
        return EXIT_NODE
    if scheduler_only and spec.scheduler_on == RANK0:
        raise RankError("this job has no scheduler apart: --role scheduler has nothing to do")
    here = SCHEDULER_ONLY_RANK if scheduler_only else cluster.first_rank + find_rank(rank, os.environ, spec.nodes)
    token = (directory / TOKEN_FILE).read_text(encoding="ascii").strip()
    stop = StopRequest()
    node = RunNode(spec, spec_path.parent / cluster.run, directory, rank=here, token=token)
    leads = scheduler_only or (here == 0 and spec.scheduler_on == RANK0)
    head = ClusterHead(node, cluster, directory, token, stop) if leads else None
    code, reason = EXIT_NODE, "it failed"
    try:
        check_build(spec)
        node.ensure_clean()
        reason = head.run() if head else follow_head(node, cluster, directory, token, stop)
        code = EXIT_OK
    except ClusterEndedError as error:
        code, reason = (EXIT_OK if lasts_s is not None and not head else EXIT_NODE), str(error)
    except (NotCleanError, OSError, RendezvousTimeoutError, StoppedError, WrongImageError) as error:
        reason = str(error)
    finally:
        node.stop()
        if head:
            head.end(reason)
        _keep_logs(node, spec_path.parents[1])
        node.remove()
    who = "the scheduler's supervisor" if scheduler_only else f"rank {here}"
    print(f"gpubench cluster, {who}: {reason}", file=sys.stderr)  # noqa: T201
    return code


def follow_head(node: RunNode, cluster: ClusterSpec, directory: Path, token: str, stop: StopRequest) -> str:
    """Run this node's workers until rank 0 requests a stop or is gone; returns the reason.

    On a request to end, or near the job's time limit, rank 0 first retires this node's workers, so their data moves.

    Raises:
        RendezvousTimeoutError: there is no cluster to join.
        ClusterEndedError: every worker of this node died.
    """
    began = time.monotonic()
    node.start(node.workers())
    path = rendezvous.path_for(directory, cluster.cluster, token)
    said = {"job": cluster.job, "host": node.facts["host"], "planned": node.spec.workers_per_node, "began": began}
    connection, scheduler = _meet(node, path, token, stop, said)
    try:
        node.tell_address(scheduler)
        reason = _until_stop(node, connection, stop)
    finally:
        node.stop()
    connection.send({"kind": "final_report"})
    connection.finish(node.spec.deadlines.stop_s)
    return reason


def _meet(node: RunNode, path: Path, token: str, stop: StopRequest, said: Dict[str, Any]) -> Tuple[Connection, str]:
    """The connection to rank 0 and the scheduler's address. If rank 0 doesn't answer, its file may be old."""
    deadline = time.monotonic() + node.spec.deadlines.start_s

    def met() -> Optional[Tuple[Connection, str]]:
        stop.check()
        facts = rendezvous.wait(path, token, deadline, stop.asked)
        hello = {**said, "age_s": round(time.monotonic() - said["began"], 3)}
        host, port = facts["server"]
        try:
            return join(host, port, token, rank=node.rank, facts=hello, timeout_s=10.0), str(facts["scheduler"])
        except OSError:
            if time.monotonic() > deadline:
                raise
            return None

    found = poll_until(met, math.inf, TICK_S, longest_s=IDLE_S, jitter=True)
    assert found is not None
    return found


def _until_stop(node: RunNode, connection: Connection, stop: StopRequest) -> str:
    told: Set[str] = set()
    leave_by = float("inf")
    grace = node.spec.deadlines.stop_s
    while True:
        connection.beat()
        for message in connection.receive():
            if message["kind"] == "stop":
                return "rank 0 requested the stop"
        if not connection.open or connection.silence() > node.spec.deadlines.silence_s:
            return "rank 0 is gone"
        reason = stop.reason if stop.asked() else NEARLY_OVER if time_left() < 2 * grace else None
        if reason and leave_by == float("inf"):
            leave_by = time.monotonic() + grace / 2
            connection.send({"kind": "leaving", "reason": reason})
        if time.monotonic() > leave_by:
            return str(reason)
        for child in node.children:
            if child.code is not None and child.name not in told:
                told.add(child.name)
                if child.code != 0 or leave_by == float("inf"):
                    connection.send({"kind": "died", "cause": child.cause()})
        if len(told) == len(node.children) and all(child.code for child in node.children):
            raise ClusterEndedError("every worker of this node died")
        stop.wait([connection.sock], TICK_S if node.starting() else IDLE_S)


def clean(directory: Path) -> None:
    """End what is left on this machine of a cluster whose supervisors were killed, with its shared memory."""
    end_marked_below(CLUSTER_VARIABLE, f"{directory.resolve()}:")
    for path in unused_segments():
        path.unlink()


def read(spec_path: Path) -> "tuple[ClusterSpec, RunSpec]":
    """Read the job's cluster spec and its run spec; raises SpecError, OSError."""
    cluster = ClusterSpec.parse(spec_path.read_text(encoding="utf-8"))
    path = spec_path.parent / cluster.run
    spec = RunSpec.parse(path.read_text(encoding="utf-8"), str(path))
    return cluster, RunSpec(**{**vars(spec), "device": resolve(spec.device)})


def _keep_logs(node: RunNode, job_dir: Path) -> None:
    """Write the last lines of every process beside the job's own log."""
    folder = job_dir / "logs"
    folder.mkdir(exist_ok=True)
    for name, text in node.logs(whole=False).items():
        (folder / name.replace("/", "-")).write_text(text + "\n", encoding="utf-8")
