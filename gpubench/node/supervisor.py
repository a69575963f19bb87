"""The supervisor that leads a run, rank 0 as a rule: it owns the cluster and writes the record, whatever happens."""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from gpubench.node import rendezvous
from gpubench.node.control_channel import FACTS, STOP, ControlServer, Message
from gpubench.node.dask_processes import RESULT_FILE
from gpubench.node.machine import interface_address
from gpubench.node.process import Child
from gpubench.node.run_node import RunNode
from gpubench.node.spec import RunSpec
from gpubench.node.stop import IDLE_S, TICK_S, StoppedError, StopRequest
from gpubench.node.turns import (
    CONTINUE,
    CONTINUED,
    PAUSE,
    PAUSED,
    ConductorGoneError,
    Turns,
    TurnsLostError,
    pause,
    resume,
)

ORDER_S = 1.0
"""When a job is ended, all its processes on all nodes are signalled within this time."""
NAMED = 16
"""A reason names at most so many ranks, and counts the others."""
START_TICK_S = 0.02
LATE_POLLS = 3
"""Ranks that connected while the run failed are still accepted: one poll accepts the connection, the next reads from
it."""


class RunFailedError(Exception):
    """The run can't go on. ``cause`` holds what died, where, and its last log lines."""

    def __init__(self, reason: str, cause: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(reason)
        self.cause = cause


class NodeLostError(RunFailedError):
    """A node or the conductor failed: it is silent, never connected or can't write. This says nothing about the
    variant.
    """


class Leader:
    """The rank of one run that has its client, from the first process to the last."""

    def __init__(self, node: RunNode, run_dir: Path, token: str, stop: StopRequest) -> None:
        self.node = node
        self.turns: Optional[Turns] = None
        self.spec: RunSpec = node.spec
        self.run_dir = run_dir
        self.token = token
        self.stop = stop
        self.server: Optional[ControlServer] = None
        self.rendezvous = rendezvous.path_for(node.runs_dir, self.spec.run, token)
        self.peers: Dict[int, Dict[str, Any]] = {}
        self.phases: Dict[str, float] = {}
        self._final_reports: Dict[int, Dict[str, Any]] = {}
        self._scheduler = ""

    def join_block(self) -> None:
        """Connect to the conductor of the run's block, which assigns the turns.

        Raises:
            NodeLostError: it isn't there.
            StoppedError: the run was asked to end.
        """
        with self._needing_turns("the run got no turns"):
            self.turns = Turns.join(self.node, self.token, self.stop)

    def run(self) -> Dict[str, Any]:
        """Bring the cluster up, let the client measure, and return what the client wrote.

        Raises:
            RunFailedError: a process died, a deadline passed, or the client found a wrong cluster.
            NodeLostError: a node is gone, never came or can't write, or the conductor is gone.
            StoppedError: a signal or the end of the front end ended it, here or on another node.
        """
        with self._needing_turns("the run lost its turns"):
            if self.turns:
                self.turns.await_start(self.stop)
            lacking = self.node.lacking_gpus()
            if lacking:  # a scheduler that finds no GPU may end before a worker says so, and with other words
                raise RunFailedError(lacking)
            began, began_at = time.monotonic(), time.time()
            where = rendezvous.rank_0_address(os.environ)
            host = rendezvous.EVERY_ADDRESS if where else interface_address(self.spec.interface)
            server = self.server = ControlServer(host, self.token, port=where[1] if where else 0, order=self.spec.order)
            arguments = ["--address", self.node.address, "--run-dir", str(self.run_dir)]
            handles = []
            if self.turns:
                self.turns.wake(server)
                handles = [self.turns.clients_end.fileno()]
                arguments += ["--turns", str(handles[0])]
            planned = self.node.planned("client", "client", *arguments, handles=handles)
            self.node.start([*self.node.scheduler(), *self.node.workers(), planned])
            client = self.node.children[-1]
            if where:
                server.greeting = {"kind": FACTS}
            else:
                rendezvous.publish(self.rendezvous, self.token, {"server": [server.host, server.port]})
            self._await_scheduler(server, began + self.spec.deadlines.start_s)
            self._supervise(client, server, began)
            result = self._result(client, server, began)
            result["registered_s"] = [round(at - began_at, 3) for at in result.get("registered_at", [])]
            self.phases.update(registration_phases(result["registered_s"]))
            self.phases["start"] = round(result.get("ready_s", 0.0), 3)
            waited = self.turns.waiting_s() if self.turns else 0.0
            self.phases["run"] = round(time.monotonic() - began - waited, 3)
            if self.turns:
                self.phases["waited"] = round(self.turns.before_s + waited, 3)
            return result

    @contextlib.contextmanager
    def _needing_turns(self, what: str) -> Iterator[None]:
        try:
            yield
        except TurnsLostError as error:
            self._raise_if_asked_to_end()  # the conductor may have been asked first
            lost = NodeLostError if isinstance(error, ConductorGoneError) else RunFailedError
            raise lost(f"{what}: {error}") from error

    def finish(self, *, failed: bool) -> Dict[int, Dict[str, Any]]:
        """End every process on every node; returns the other ranks' final reports, by rank."""
        began = time.monotonic()
        if self.server is not None:
            for _ in range(LATE_POLLS if self.server.port_is_known else 0):
                self._receive(self.server, fatal=False)
            self.server.broadcast({"kind": STOP, "whole_logs": failed})
        self.node.stop()
        if self.server is not None:
            deadline = began + self.spec.deadlines.stop_s
            while time.monotonic() < deadline and set(self.peers) - set(self._final_reports) - set(
                self.server.gone(1e9)
            ):
                self._listen(self.server, fatal=False)
            self.server.close()
        with contextlib.suppress(FileNotFoundError):
            self.rendezvous.unlink()
        self.phases["stop"] = round(time.monotonic() - began, 3)
        return self._final_reports

    def _await_scheduler(self, server: ControlServer, deadline: float) -> None:
        """Wait until the scheduler answers, on whichever node, and tell its address to every node."""
        child = next((child for child in self.node.children if child.name == "scheduler"), None)
        while not self._scheduler:
            self._tick()
            if child is not None and child.code is not None:
                cause = child.cause()
                cause["how"] = f"{cause['how']}{self.node.ucx_error()}"
                raise self._failed("the scheduler ended while starting", cause)
            self._listen(server, fatal=True, wait_s=START_TICK_S if child else TICK_S)
            address = self.node.scheduler_address() if child else ""
            if address:
                self._announce(server, address)
            elif time.monotonic() > deadline:
                reason = f"the scheduler did not start in time{self.node.ucx_error()}"
                raise RunFailedError(reason, child.cause() if child else None)

    def _announce(self, server: ControlServer, address: str) -> None:
        self._scheduler = address
        self.node.tell_address(address)
        server.broadcast({"kind": "scheduler", "address": address})

    def _supervise(self, client: Child, server: ControlServer, began: float) -> None:
        """Wait until the client ends. The end of any other process, on any node, ends the run."""
        limit = began + self.spec.deadlines.start_s + sum(item.timeout_s for item in self.spec.workloads) + 60.0
        while client.code is None:
            self._watch(client, server, began, TICK_S if self.node.starting() else IDLE_S)
            if self.turns:
                self._take_turns(self.turns, server, client)
            if self._own_time() > limit:
                raise RunFailedError(f"the run did not end within {limit - began:.0f} s", client.cause())

    def _watch(self, client: Child, server: ControlServer, began: float, longest_s: float = TICK_S) -> None:
        """Check everything but the client, when something has happened or the next sample of the load is due."""
        pause_s = self._tick()
        self._listen(server, fatal=True, wait_s=min(pause_s, longest_s))
        child = next((child for child in self.node.children if child is not client and child.code is not None), None)
        if child is not None:
            raise self._failed(f"{child.name} ended", child.cause())
        if self._own_time() > began + self.spec.deadlines.start_s:
            missing = sorted(set(self.spec.ranks) - {self.node.rank} - set(self.peers))
            if missing:
                places = self._places(missing)
                raise NodeLostError(f"no sign of node rank [{places}] within {self.spec.deadlines.start_s:.0f} s")

    def _places(self, ranks: List[int]) -> str:
        more = f" and {len(ranks) - NAMED} more" if len(ranks) > NAMED else ""
        return ", ".join(self.spec.place(rank) for rank in ranks[:NAMED]) + more

    def _own_time(self) -> float:
        """The monotonic clock, less the time in which the run waited for its turns."""
        return time.monotonic() - (self.turns.waiting_s() if self.turns else 0.0)

    def _take_turns(self, turns: Turns, server: ControlServer, client: Child) -> None:
        """Resume the cluster at the begin of its turn, and pause it at the end."""
        cluster = [child for child in self.node.children if child is not client]
        turn = turns.asked()
        if turns.at_work and turn is None:
            if turns.is_returned():
                pause([client])
                self._tell_all(server, PAUSE, PAUSED)
                pause(cluster)
                turns.give_back()
        elif turn is not None:
            resume(cluster)
            self._tell_all(server, CONTINUE, CONTINUED)
            resume([client])
            turns.forward(turn)

    def _tell_all(self, server: ControlServer, kind: str, answer: str) -> None:
        """Send to the other nodes of the run, and wait until each has answered."""
        waiting = set(self.peers)
        server.broadcast({"kind": kind})
        while waiting:
            self._tick()
            messages = self._listen(server, fatal=True)
            waiting -= {message["rank"] for message in messages if message["kind"] == answer}

    def _listen(self, server: ControlServer, *, fatal: bool, wait_s: float = TICK_S) -> List[Message]:
        messages = self._receive(server, fatal=fatal, wait_s=wait_s)
        died = next((message for message in messages if message["kind"] == "died"), None)
        if fatal and died is not None:
            raise self._failed("{} ended".format(died["cause"]["process"]), dict(died["cause"], rank=died["rank"]))
        gone = [rank for rank in server.gone(self.spec.deadlines.silence_s) if rank not in self._final_reports]
        if fatal and gone:
            raise NodeLostError(f"lost node rank {self._places(gone)}")
        return messages

    def _receive(self, server: ControlServer, *, fatal: bool, wait_s: float = TICK_S) -> List[Message]:
        self.stop.wait([server], wait_s)
        messages = server.poll(0)
        if self.turns:
            self.turns.read_ahead(server)
        for message in messages:
            if message["kind"] == "hello":
                self.peers[message["rank"]] = message["facts"]
                if self._scheduler:
                    server.send(message["rank"], {"kind": "scheduler", "address": self._scheduler})
            elif message["kind"] == "scheduler":
                self._announce(server, message["address"])
            elif message["kind"] == "final_report":
                self._final_reports[message["rank"]] = message
            elif message["kind"] == "stopped" and fatal:
                raise StoppedError("node rank {}: {}".format(self.spec.place(message["rank"]), message["reason"]))
        return messages

    def _failed(self, what: str, cause: Dict[str, Any]) -> RunFailedError:
        """The error to raise; raises StoppedError instead if the run was asked to end."""
        self._raise_if_asked_to_end()
        if cause.get("disk"):
            return NodeLostError("{}: {}, and its node can't write {}".format(what, cause["how"], cause["disk"]), cause)
        return RunFailedError("{}: {}".format(what, cause["how"]), cause)

    def _raise_if_asked_to_end(self) -> None:
        """Raise StoppedError if the run is asked to end: when a job is ended, its processes are signalled in any
        order.
        """
        deadline = time.monotonic() + ORDER_S
        while time.monotonic() < deadline:
            self.stop.check()
            if self.server is None:
                time.sleep(TICK_S)
            else:
                self._receive(self.server, fatal=True)

    def _tick(self) -> float:
        """Seconds until the next."""
        self.stop.check()
        return self.node.load.tick()

    def _result(self, client: Child, server: ControlServer, began: float) -> Dict[str, Any]:
        path = self.node.scratch / RESULT_FILE
        if client.code != 0 or not path.exists():
            self._raise_other_cause(client, server, began)
            raise self._failed("the client ended", client.cause())
        result: Dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if result["error"] or any(item["status"] == "failed" for item in result["workloads"]):
            self._raise_other_cause(client, server, began)
        return result

    def _raise_other_cause(self, client: Child, server: ControlServer, began: float) -> None:
        """Raise if another process or node caused the failure: a client often fails before that is known here."""
        deadline = time.monotonic() + ORDER_S
        while time.monotonic() < deadline:
            self._watch(client, server, began)


def registration_phases(registered_s: List[float]) -> Dict[str, float]:
    """Seconds from the supervisor's start to the registration of the first worker, of half of them and of the last.

    Both clocks are the leader's: the client corrects those of a scheduler elsewhere. What this holds for N workers is
    Summit's "time to N workers", which its waiter prints and forgets.
    """
    if not registered_s:
        return {}
    ordered = sorted(registered_s)
    half = ordered[(len(ordered) + 1) // 2 - 1]
    return {"first_worker": ordered[0], "half_workers": half, "all_workers": ordered[-1]}
