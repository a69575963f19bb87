"""The supervisor that leads a run, rank 0 as a rule: it owns the cluster and writes the record, whatever happens."""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from gpubench.node import rendezvous, tcp_rendezvous
from gpubench.node.control_channel import FACTS, STOP, ControlServer, Message
from gpubench.node.net import interface_address
from gpubench.node.node import RunNode
from gpubench.node.process import Child
from gpubench.node.roles import RESULT_FILE
from gpubench.node.stop import StoppedError, StopRequest
from gpubench.node.turns import (
    CONTINUE,
    CONTINUED,
    PAUSE,
    PAUSED,
    ConductorGoneError,
    Turns,
    TurnsLostError,
    go_on,
    pause,
)
from gpubench.spec import RunSpec

TICK_S = 0.1
ORDER_S = 1.0
"""Within which the processes of a job that is ended have all been signalled, on every node."""
NAMED = 16
"""Ranks that a reason names; the others are counted."""
START_TICK_S = 0.02
LATE_LOOKS = 3
"""Let in who knocked while the run was failing, and would wait for its end: one look accepts, the next one reads."""


class RunFailedError(Exception):
    """The run can't go on. ``cause`` holds what died, where, and its last log lines."""

    def __init__(self, reason: str, cause: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(reason)
        self.cause = cause


class NodeLostError(RunFailedError):
    """A node is silent, never came or can't write, or the conductor is gone: nothing about what was measured."""


class Leader:
    """The rank of one run that has its client, from the first process to the last."""

    def __init__(self, node: RunNode, run_dir: Path, token: str, stop: StopRequest) -> None:
        self.node = node
        self.turns: Optional[Turns] = None
        self.spec: RunSpec = node.spec
        self.run_dir = run_dir
        self.token = token
        self.stop = stop
        self.hub: Optional[ControlServer] = None
        self.rendezvous = rendezvous.path_for(node.runs_dir, self.spec.run, token)
        self.peers: Dict[int, Dict[str, Any]] = {}
        self.phases: Dict[str, float] = {}
        self._farewells: Dict[int, Dict[str, Any]] = {}
        self._scheduler = ""

    def join_block(self) -> None:
        """Meet the conductor of the run's block, who gives the turns.

        Raises:
            NodeLostError: it isn't there.
            StoppedError: the run was asked to end.
        """
        try:
            self.turns = Turns.join(self.node, self.token, self.stop)
        except ConductorGoneError as error:
            self._hear_the_order()  # the conductor may have heard it first
            raise NodeLostError(f"the run got no turns: {error}") from error

    def run(self) -> Dict[str, Any]:
        """Bring the cluster up, let the client measure, and return what the client wrote.

        Raises:
            RunFailedError: a process died, a deadline passed, or the client found a wrong cluster.
            NodeLostError: a node is gone, never came or can't write, or the conductor is gone.
            StoppedError: a signal or the end of the front end ended it, here or on another node.
        """
        try:
            return self._run()
        except TurnsLostError as error:
            self._hear_the_order()  # the conductor may have heard it first
            lost = NodeLostError if isinstance(error, ConductorGoneError) else RunFailedError
            raise lost(f"the run lost its turns: {error}") from error

    def _run(self) -> Dict[str, Any]:
        if self.turns:
            self.turns.await_start(self.stop)
        began, began_at = time.monotonic(), time.time()
        where = tcp_rendezvous.place(os.environ)
        hub = self.hub = ControlServer(
            interface_address(self.spec.interface), self.token, port=where[1] if where else 0, order=self.spec.order
        )
        self.node.start_scheduler()
        self.node.start_workers()
        words = ["--address", self.node.address, "--run-dir", str(self.run_dir)]
        handles = []
        if self.turns:
            self.turns.wake(hub)
            handles = [self.turns.clients_end.fileno()]
            words += ["--turns", str(handles[0])]
        client = self.node.start("client", "client", *words, pass_fds=handles)
        if where:
            hub.welcome = {"kind": FACTS}
        else:
            rendezvous.publish(self.rendezvous, self.token, {"hub": [hub.host, hub.port], "attempt": self.run_dir.name})
        self._await_scheduler(hub, began + self.spec.deadlines.start_s)
        self._supervise(client, hub, began)
        result = self._result(client, hub, began)
        result["registered_s"] = [round(at - began_at, 3) for at in result.get("registered_at", [])]
        self.phases.update(registration_phases(result["registered_s"]))
        self.phases["start"] = round(result.get("ready_s", 0.0), 3)
        waited = self.turns.waiting_s() if self.turns else 0.0
        self.phases["run"] = round(time.monotonic() - began - waited, 3)
        if self.turns:
            self.phases["waited"] = round(self.turns.before_s + waited, 3)
        return result

    def finish(self, *, failed: bool) -> Dict[int, Dict[str, Any]]:
        """End every process on every node; what the other ranks said last, by rank."""
        began = time.monotonic()
        if self.hub is not None:
            for _ in range(LATE_LOOKS if self.hub.port_is_known else 0):
                self._heard(self.hub, fatal=False)
            self.hub.broadcast({"kind": STOP, "whole_logs": failed})
        self.node.stop()
        if self.hub is not None:
            deadline = began + self.spec.deadlines.stop_s
            while time.monotonic() < deadline and set(self.peers) - set(self._farewells) - set(self.hub.gone(1e9)):
                self._listen(self.hub, fatal=False)
            self.hub.close()
        with contextlib.suppress(FileNotFoundError):
            self.rendezvous.unlink()
        self.phases["stop"] = round(time.monotonic() - began, 3)
        return self._farewells

    def _await_scheduler(self, hub: ControlServer, deadline: float) -> None:
        """Until it answers, here or where it is, and every node has been told."""
        child = next((child for child in self.node.children if child.name == "scheduler"), None)
        while not self._scheduler:
            self._tick()
            if child is not None and child.code is not None:
                raise self._failed("the scheduler ended while starting", child.cause())
            self._listen(hub, fatal=True, wait_s=START_TICK_S)
            address = self.node.scheduler_address()
            if address:
                self._announce(hub, address)
            elif time.monotonic() > deadline:
                raise RunFailedError("the scheduler did not start in time", child.cause() if child else None)

    def _announce(self, hub: ControlServer, address: str) -> None:
        self._scheduler = address
        self.node.tell_address(address)
        hub.broadcast({"kind": "scheduler", "address": address})

    def _supervise(self, client: Child, hub: ControlServer, began: float) -> None:
        """Until the client ends: every other end of a process, here or elsewhere, ends the run."""
        limit = began + self.spec.deadlines.start_s + sum(item.timeout_s for item in self.spec.workloads) + 60.0
        while client.code is None:
            self._watch(client, hub, began)
            if self.turns:
                self._take_turns(self.turns, hub, client)
            if self._own_time() > limit:
                raise RunFailedError(f"the run did not end within {limit - began:.0f} s", client.cause())

    def _watch(self, client: Child, hub: ControlServer, began: float) -> None:
        """One look at everything but the client."""
        self._tick()
        self._listen(hub, fatal=True)
        child = next((child for child in self.node.children if child is not client and child.code is not None), None)
        if child is not None:
            raise self._failed(f"{child.name} ended", child.cause())
        if self._own_time() > began + self.spec.deadlines.start_s:
            missing = sorted(set(self.spec.ranks) - {self.node.rank} - set(self.peers))
            if missing:
                words = self._places(missing)
                raise NodeLostError(f"no sign of node rank [{words}] within {self.spec.deadlines.start_s:.0f} s")

    def _places(self, ranks: List[int]) -> str:
        more = f" and {len(ranks) - NAMED} more" if len(ranks) > NAMED else ""
        return ", ".join(self.spec.place(rank) for rank in ranks[:NAMED]) + more

    def _own_time(self) -> float:
        """The clock without what the run has waited for its turns."""
        return time.monotonic() - (self.turns.waiting_s() if self.turns else 0.0)

    def _take_turns(self, turns: Turns, hub: ControlServer, client: Child) -> None:
        """Let the cluster work when it is its turn, and be quiet when it isn't."""
        cluster = [child for child in self.node.children if child is not client]
        turn = turns.asked()
        if turns.at_work and turn is None:
            if turns.given_back():
                pause([client])
                self._tell_all(hub, PAUSE, PAUSED)
                pause(cluster)
                turns.give_back()
        elif turn is not None:
            go_on(cluster)
            self._tell_all(hub, CONTINUE, CONTINUED)
            go_on([client])
            turns.hand_on(turn)

    def _tell_all(self, hub: ControlServer, kind: str, answer: str) -> None:
        """Tell the other nodes of the run, and wait until each has answered."""
        waiting = set(self.peers)
        hub.broadcast({"kind": kind})
        while waiting:
            self._tick()
            messages = self._listen(hub, fatal=True)
            waiting -= {message["rank"] for message in messages if message["kind"] == answer}

    def _listen(self, hub: ControlServer, *, fatal: bool, wait_s: float = TICK_S) -> List[Message]:
        messages = self._heard(hub, fatal=fatal, wait_s=wait_s)
        died = next((message for message in messages if message["kind"] == "died"), None)
        if fatal and died is not None:
            raise self._failed("{} ended".format(died["cause"]["process"]), dict(died["cause"], rank=died["rank"]))
        gone = [rank for rank in hub.gone(self.spec.deadlines.silence_s) if rank not in self._farewells]
        if fatal and gone:
            raise NodeLostError(f"lost node rank {self._places(gone)}")
        return messages

    def _heard(self, hub: ControlServer, *, fatal: bool, wait_s: float = TICK_S) -> List[Message]:
        messages = hub.poll(wait_s)
        if self.turns:
            self.turns.beat()
        for message in messages:
            if message["kind"] == "hello":
                self.peers[message["rank"]] = message["facts"]
                if self._scheduler:
                    hub.send(message["rank"], {"kind": "scheduler", "address": self._scheduler})
            elif message["kind"] == "scheduler":
                self._announce(hub, message["address"])
            elif message["kind"] == "farewell":
                self._farewells[message["rank"]] = message
            elif message["kind"] == "stopped" and fatal:
                raise StoppedError("node rank {}: {}".format(self.spec.place(message["rank"]), message["reason"]))
        return messages

    def _failed(self, what: str, cause: Dict[str, Any]) -> RunFailedError:
        """The failure, unless the run was asked to end."""
        self._hear_the_order()
        if cause.get("disk"):
            return NodeLostError("{}: {}, and its node can't write {}".format(what, cause["how"], cause["disk"]), cause)
        return RunFailedError("{}: {}".format(what, cause["how"]), cause)

    def _hear_the_order(self) -> None:
        """Raise StoppedError if the run is asked to end: who ends a whole job signals its processes in any order."""
        deadline = time.monotonic() + ORDER_S
        while time.monotonic() < deadline:
            self.stop.check()
            if self.hub is None:
                time.sleep(TICK_S)
            else:
                self._heard(self.hub, fatal=True)

    def _tick(self) -> None:
        self.stop.check()
        self.node.load.tick()

    def _result(self, client: Child, hub: ControlServer, began: float) -> Dict[str, Any]:
        path = self.node.scratch / RESULT_FILE
        if client.code != 0 or not path.exists():
            self._look_for_the_cause(client, hub, began)
            raise self._failed("the client ended", client.cause())
        result: Dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if result["error"] or any(item["status"] == "failed" for item in result["workloads"]):
            self._look_for_the_cause(client, hub, began)
        return result

    def _look_for_the_cause(self, client: Child, hub: ControlServer, began: float) -> None:
        """Raise if it is another process or node: a client often fails before we hear of that."""
        deadline = time.monotonic() + ORDER_S
        while time.monotonic() < deadline:
            self._watch(client, hub, began)


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
