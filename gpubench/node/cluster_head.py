"""The node of a standing cluster that has the scheduler: it serves requests, and keeps the state until the job ends."""

import contextlib
import json
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from gpubench.node import rendezvous
from gpubench.node.cluster_state import ClusterEndedError, ClusterStateFile, time_left
from gpubench.node.control_channel import ControlServer, Message
from gpubench.node.machine import interface_address
from gpubench.node.process import Child
from gpubench.node.run_node import RunNode
from gpubench.node.spec.cluster import GONE, JOINED, LEAVING, REQUESTS, SCHEDULER_FILE
from gpubench.node.stop import TICK_S, StopRequest
from gpubench.node.workloads.clock import poll_until
from gpubench.node.writer.atomic import write_atomic

REQUEST_S = 0.5


class ClusterHead:
    def __init__(self, node: RunNode, directory: Path, token: str, stop: StopRequest) -> None:
        self.node, self.spec = node, node.spec
        self.directory, self.token, self.stop = directory, token, stop
        self.state_file = ClusterStateFile(directory, self.spec.campaign)
        self.rendezvous = rendezvous.path_for(directory, self.spec.campaign, token)
        self.server: Optional[ControlServer] = None
        self._began = time.monotonic()
        self._registry = node.scratch / "registry.json"
        self._scheduler_only = not node.spec.has_workers(node.rank)
        self._dead: List[Child] = []
        self._asked = 0.0

    def run(self) -> str:
        """Run until it is asked to end or its time is over; returns the reason.

        Raises:
            ClusterEndedError: the scheduler died, or the job's own nodes didn't all come.
        """
        server = self.server = ControlServer(interface_address(self.spec.interface), self.token)
        if not self._scheduler_only:
            planned = self.spec.workers_per_node
            self.state_file.joined(self.node.rank, self.spec.job, str(self.node.facts["host"]), planned, 0.0)
        self.state_file.write()
        file = self.node.scratch / SCHEDULER_FILE
        arguments = ("--scheduler-file", str(file), "--registry", str(self._registry))
        self.node.start([self.node.planned("scheduler", "scheduler", *arguments), *self.node.workers()])
        scheduler = self.node.children[0]
        address = self._address(scheduler)
        self.node.tell_address(address)
        rendezvous.publish(self.rendezvous, self.token, {"scheduler": address, "server": [server.host, server.port]})
        ready = False
        while True:
            self._tick(server, scheduler, REQUEST_S if ready and not self.node.starting() else TICK_S)
            if not ready and self.state_file.complete(self.spec.job, self.spec.nodes):
                ready = True
                write_atomic(self.directory / SCHEDULER_FILE, file.read_bytes(), mode=0o600)
                self.state_file.ready(address)
            if not ready and time.monotonic() - self._began > self.spec.deadlines.start_s:
                raise ClusterEndedError(
                    f"{self.state_file.state.connected} of {self.spec.workers} workers connected within "
                    f"{self.spec.deadlines.start_s:g} s"
                )
            if ready and not any(map(self._is_here, range(self.spec.nodes))):
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
            while time.monotonic() < deadline and any(
                connection.open for connection in self.server.connections.values()
            ):
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

    def _tick(self, server: ControlServer, scheduler: Child, longest_s: float) -> None:
        self.stop.wait([server], longest_s)
        for message in server.poll(0):
            self._receive(server, message)
        for rank in server.gone(self.spec.deadlines.silence_s):
            server.forget(rank)
            if self._is_here(rank):
                self.state_file.move(rank, GONE)
                self.state_file.event(f"node rank {rank} no longer answers")
        if scheduler.code is not None:
            self.stop.check()
            raise ClusterEndedError(f"the scheduler ended: {scheduler.cause()['how']}")
        for child in self.node.children:
            if child.code is not None and child not in self._dead and child.name.startswith("worker-"):
                self._dead.append(child)
                self.state_file.event(f"{child.name} ended: {child.cause()['how']}", child.cause())
        self.state_file.count(_registered(self._registry))
        self._read_requests(server)
        self.state_file.write()

    def _receive(self, server: ControlServer, message: Message) -> None:
        rank = int(message["rank"])
        if message["kind"] == "hello":
            facts = message["facts"]
            self.state_file.joined(rank, facts["job"], facts["host"], facts["planned"], facts["age_s"])
        elif message["kind"] == "died":
            cause = message["cause"]
            self.state_file.event("{} ended: {}".format(cause["process"], cause["how"]), cause)
        elif message["kind"] == "leaves":
            self.state_file.move(rank, LEAVING)
            self.state_file.event("node rank {} leaves: {}".format(rank, message["reason"]))
        elif message["kind"] == "stays":
            self.state_file.move(rank, JOINED)
            self.state_file.event("node rank {} can't leave: {}".format(rank, message["reason"]))
        elif message["kind"] == "final_report":
            self.state_file.move(rank, message["state"])
            server.forget(rank)

    def _read_requests(self, server: ControlServer) -> None:
        if time.monotonic() - self._asked < REQUEST_S:
            return
        self._asked = time.monotonic()
        for path in sorted((self.directory / REQUESTS).glob("*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                request = json.loads(path.read_text(encoding="utf-8"))
                if request.get("stop"):
                    self.stop.reason = self.stop.reason or str(request["stop"])
                for rank in filter(self._is_here, request.get("leave", [])):
                    self.state_file.move(rank, LEAVING, path.stem)
                    server.send(rank, {"kind": "leave"})
            path.unlink()

    def _is_here(self, rank: int) -> bool:
        nodes = self.state_file.state.nodes
        return any(node["rank"] == rank and node["state"] in (JOINED, LEAVING) for node in nodes)


def _registered(path: Path) -> List[Dict[str, Any]]:
    """The registered workers, as the scheduler's preload last wrote them; none before its first write."""
    try:
        rows: List[Dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return rows
