"""The turns of an interleaved block: who assigns them, when a run's cluster works, and how it pauses while others work.

The conductor, a process of its own on the first node, gives the turns of the plan to the block's runs, one after the
other. A run that ends, fails or no longer answers loses its turns; the others continue. The conductor assigns turns to
the leaders of the block's runs, a leader forwards a turn to its client, and the client reports its end. While others
have their turns, the processes of the cluster are stopped (SIGSTOP): the bindings of UCX wait by polling, so a cluster
that waits would use a core for each of its processes.
"""

import contextlib
import itertools
import json
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Set

from gpubench.node import rendezvous
from gpubench.node.control_channel import Connection, ControlServer, Message, join
from gpubench.node.machine import interface_address
from gpubench.node.process import Child
from gpubench.node.run_node import RunNode
from gpubench.node.spec.turns import END, START, Turn, TurnsSpec, rendezvous_name
from gpubench.node.stop import IDLE_S, StopRequest
from gpubench.node.writer.run_dir import finished

TURN, DONE, OVER = "turn", "done", "over"
"""Kinds of messages: the run has the turn; the run's turn is over; the run gets no more turns (with the reason)."""
PAUSE, CONTINUE, PAUSED, CONTINUED = "pause", "continue", "paused", "continued"
"""Kinds of messages from the leader to the other nodes of its run, and their answers."""


class TurnsLostError(Exception):
    """The run gets no more turns; the message says why."""


class ConductorGoneError(TurnsLostError):
    """The conductor died: that says nothing about what was measured."""


class Turns:
    """The leader's end: a connection to the conductor and one to the client."""

    def __init__(self, node: RunNode, conductor: Connection) -> None:
        self._silence_s = node.spec.deadlines.silence_s
        self._conductor = conductor
        mine, self.clients_end = socket.socketpair()
        self._client = Connection(mine)
        self.at_work = False
        self.before_s = 0.0
        self.waited_s = 0.0
        self._paused_at = time.monotonic()

    @staticmethod
    def join(node: RunNode, token: str, stop: StopRequest) -> "Turns":
        """Meet the conductor of the run's block.

        Raises:
            ConductorGoneError: it didn't show up within the start's deadline, or doesn't answer.
            StoppedError: the run was asked to end.
        """
        spec = node.spec
        path = rendezvous.path_for(node.runs_dir, rendezvous_name(spec.block), token)
        try:
            facts = rendezvous.wait(path, token, time.monotonic() + spec.deadlines.start_s, stop.asked)
        except rendezvous.RendezvousTimeoutError:
            stop.check()
            raise ConductorGoneError(f"no conductor of its block within {spec.deadlines.start_s:g} s") from None
        host, port = facts["server"]
        try:
            connection = join(host, port, token, rank=spec.order, facts={}, timeout_s=spec.deadlines.start_s)
        except OSError as error:
            raise ConductorGoneError(f"the conductor of its block doesn't answer: {error}") from error
        return Turns(node, connection)

    def await_start(self, stop: StopRequest) -> None:
        """Wait until the cluster may start.

        Raises:
            TurnsLostError: it may not.
            StoppedError: the run was asked to end.
        """
        while not self.at_work:
            stop.check()
            stop.wait([self._conductor.sock], IDLE_S)
            self._receive()
        self.before_s = time.monotonic() - self._paused_at

    def wake(self, server: ControlServer) -> None:
        """Let ``server.poll`` return when a message from conductor or client arrives."""
        server.wake_on(self._conductor.sock)
        server.wake_on(self._client.sock)

    def asked(self) -> Optional[Message]:
        """The turn that was just assigned, if any."""
        before = self.at_work
        turn = self._receive()
        if turn is not None and not before:
            self.waited_s += time.monotonic() - self._paused_at
        return turn

    def forward(self, turn: Message) -> None:
        self._client.send(turn)

    def is_returned(self) -> bool:
        return any(message["kind"] == DONE for message in self._client.receive())

    def give_back(self) -> None:
        """Tell the conductor that the turn is over; the cluster is paused."""
        self.at_work = False
        self._paused_at = time.monotonic()
        self._conductor.send({"kind": DONE})

    def waiting_s(self) -> float:
        """Seconds in which others had their turns, up to now."""
        return self.waited_s + (0.0 if self.at_work else time.monotonic() - self._paused_at)

    def close(self) -> None:
        """Leave the block; the conductor continues with the other runs."""
        for connection in (self._client, self._conductor):
            connection.close()
        self.clients_end.close()

    def read_ahead(self, server: ControlServer) -> None:
        """Keep what conductor and client have sent until it is asked for: unread, it would end every wait of ``server``
        at once. Sends a heartbeat to the conductor, also in a long turn.
        """
        self._conductor.beat()
        for connection in (self._conductor, self._client):
            connection.put_back(connection.receive())
            if not connection.open:
                server.wake_no_more_on(connection.sock)

    def _receive(self) -> Optional[Message]:
        self._conductor.beat()
        turn = None
        for message in self._conductor.receive():
            if message["kind"] == OVER:
                raise TurnsLostError(str(message["reason"]))
            if message["kind"] == TURN:
                turn, self.at_work = message, True
        if not self._conductor.open or self._conductor.silence() > self._silence_s:
            raise ConductorGoneError("the conductor of its block is gone")
        return turn


def pause(children: List[Child]) -> None:
    """Stop processes in the reverse order of their start: clients before servers."""
    for child in reversed(children):
        child.signal(signal.SIGSTOP)


def resume(children: List[Child]) -> None:
    """Continue processes in the order of their start: servers before clients."""
    for child in children:
        child.signal(signal.SIGCONT)


class ClientTurns:
    """The client's end. The first turn, in which the clusters start, is on when the client starts."""

    def __init__(self, handle: int) -> None:
        self._sock = socket.socket(fileno=handle)
        self._lines = self._sock.makefile("r", encoding="utf-8")
        self._on = True

    def begin(self, workload: int) -> None:
        """Wait for a turn of this workload. Turns of workloads that ended early are returned at once.

        Raises:
            TurnsLostError: the supervisor is gone.
        """
        while True:
            line = self._lines.readline()
            if not line:
                raise TurnsLostError("the supervisor is gone")
            message = json.loads(line)
            if message["kind"] == TURN:
                self._on = True
                if message["workload"] == workload:
                    return
                self.end()

    def end(self) -> None:
        """Return the turn, if the run has it: a workload may also end while it waits for its next turn."""
        if not self._on:
            return
        self._on = False
        self._sock.sendall(json.dumps({"kind": DONE}).encode("utf-8") + b"\n")

    @contextlib.contextmanager
    def all_of(self, workload: int) -> Iterator[None]:
        """Hold the turns of a workload, from its first to its last or to its failure."""
        self.begin(workload)
        try:
            yield
        finally:
            self.end()


class Conductor:
    """Gives every turn, and waits until it is given back."""

    def __init__(self, spec: TurnsSpec, server: ControlServer, stop: StopRequest) -> None:
        self.spec, self.server, self.stop = spec, server, stop
        self.gone: Set[int] = set()

    def gather(self, orders: Set[int]) -> None:
        """Wait until the leaders of all runs are there, or the deadline has passed."""
        deadline = time.monotonic() + self.spec.start_s
        while orders - set(self.server.connections) and time.monotonic() < deadline:
            self._receive()
        self.gone |= {int(order) for order in self.spec.runs} - set(self.server.connections)

    def conduct(self) -> None:
        """Give all turns, in the order of the plan: to one run at a time, but all clusters start and end together."""
        for workload, turns in itertools.groupby(self.spec.turns, key=lambda turn: turn.workload):
            together = list(turns)
            for given in [together] if workload in (START, END) else [[turn] for turn in together]:
                self._give(given)

    def _give(self, turns: Sequence[Turn]) -> None:
        """Give one turn to each of these runs, and wait until each has returned it or is gone."""
        waiting = {turn.order: turn for turn in turns if turn.order not in self.gone}
        for order, turn in waiting.items():
            self.server.send(order, {"kind": TURN, "workload": turn.workload})
        deadline = time.monotonic() + self.spec.turn_s
        while waiting:
            for message in self._receive():
                known = waiting.get(message["rank"])
                if known is not None and message["kind"] == DONE and known.workload != END:
                    del waiting[known.order]
            if time.monotonic() > deadline:
                reason = f"it didn't give its turn back within {self.spec.turn_s:g} s; the block's other runs continue"
                for order in waiting:
                    self.server.send(order, {"kind": OVER, "reason": reason})
                self._await_end(set(waiting))
                self.gone.update(waiting)
            waiting = {order: turn for order, turn in waiting.items() if order not in self.gone}

    def _await_end(self, orders: Set[int]) -> None:
        """Wait a limited time until these runs are gone: their clusters must not run during the others' turns."""
        deadline = time.monotonic() + self.spec.silence_s
        while orders - self.gone and time.monotonic() < deadline:
            self._receive()

    def _receive(self) -> List[Message]:
        self.stop.check()
        self.stop.wait([self.server], IDLE_S)
        messages = self.server.poll(0)
        self.gone.update(self.server.gone(self.spec.silence_s))
        return messages


def conduct(spec: TurnsSpec, runs_dir: Path, token: str, stop: StopRequest) -> None:
    """Give the turns of one block. Raises StoppedError: a signal or the end of the front end ended it."""
    orders = {int(order) for order, run in spec.runs.items() if finished(runs_dir, run) is None}
    if not orders:
        return  # the job starts again: the block is done
    server = ControlServer(interface_address(spec.interface), token)
    path = rendezvous.path_for(runs_dir, rendezvous_name(spec.block), token)
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        rendezvous.publish(path, token, {"server": [server.host, server.port]})
        conductor = Conductor(spec, server, stop)
        conductor.gather(orders)
        late = sorted(conductor.gone & orders)
        if late:
            print(f"gpubench conduct: block {spec.block} continues without run {late}", file=sys.stderr)  # noqa: T201
        conductor.conduct()
    finally:
        server.close()
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
