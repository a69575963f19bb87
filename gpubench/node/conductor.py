"""The conductor of an interleaved block: gives the turns of the plan to the block's runs, one after the other.

A process of its own on the first node. A run that ends, fails or falls silent loses its turns; the others go on.
"""

import contextlib
import itertools
import sys
import time
from pathlib import Path
from typing import List, Sequence, Set

from gpubench.node import rendezvous
from gpubench.node.control_channel import ControlServer, Message
from gpubench.node.net import interface_address
from gpubench.node.stop import IDLE_S, StopRequest
from gpubench.node.turns import DONE, OVER, TURN
from gpubench.spec.turns import END, START, Turn, TurnsSpec, rendezvous_name
from gpubench.writer.run_dir import finished


class Conductor:
    """Gives every turn, and waits until it is given back."""

    def __init__(self, spec: TurnsSpec, server: ControlServer, stop: StopRequest) -> None:
        self.spec, self.server, self.stop = spec, server, stop
        self.gone: Set[int] = set()

    def gather(self, orders: Set[int]) -> None:
        """Until the leaders of all runs are there, or their time to come is over."""
        deadline = time.monotonic() + self.spec.start_s
        while orders - set(self.server.connections) and time.monotonic() < deadline:
            self._receive()
        self.gone |= {int(order) for order in self.spec.runs} - set(self.server.connections)

    def conduct(self) -> None:
        """All turns, in the order of the plan: one run at a time has one, but all clusters start and end together."""
        for workload, turns in itertools.groupby(self.spec.turns, key=lambda turn: turn.workload):
            together = list(turns)
            for given in [together] if workload in (START, END) else [[turn] for turn in together]:
                self._give(given)

    def _give(self, turns: Sequence[Turn]) -> None:
        """One turn to each of these runs, until each has given it back or is gone."""
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
                reason = f"it didn't give its turn back within {self.spec.turn_s:g} s; the block's other runs go on"
                for order in waiting:
                    self.server.send(order, {"kind": OVER, "reason": reason})
                self._await_end(set(waiting))
                self.gone.update(waiting)
            waiting = {order: turn for order, turn in waiting.items() if order not in self.gone}

    def _await_end(self, orders: Set[int]) -> None:
        """Their clusters must not be measured beside the others' turns, as far as that can be had."""
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
    """Give the turns of one block.

    Raises:
        StoppedError: a signal or the end of the front end ended it.
    """
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
            print(f"gpubench conduct: block {spec.block} goes on without run {late}", file=sys.stderr)  # noqa: T201
        conductor.conduct()
    finally:
        server.close()
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
