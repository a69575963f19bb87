"""The supervisor of every other rank: workers, and a line to rank 0."""

import os
import random
import time
from typing import Callable, Optional, Set

from gpubench.node import by_name, rendezvous
from gpubench.node.hub import STOP, Line, join
from gpubench.node.node import Node
from gpubench.node.stop import StoppedError, StopRequest
from gpubench.writer.run_dir import finished, recorded

TICK_S = 0.1


def follow(node: Node, token: str, stop: StopRequest) -> None:
    """Run this node's workers until rank 0 says stop, dies or falls silent; leaves no process behind.

    Comes back at once when rank 0 has written its record before they could meet.

    Raises:
        RendezvousTimeoutError: rank 0 didn't show up.
        OSError: rank 0 doesn't answer.
        StoppedError: a signal ended it.
    """
    spec = node.spec
    node.start_workers()
    met = _meet(node, token, stop)
    if met is None:
        return
    line, scheduler = met
    try:
        node.tell_address(scheduler)
        whole_logs = _until_stop(node, line, stop)
    except StoppedError as stopped:
        line.send({"kind": "stopped", "reason": str(stopped)})
        raise
    finally:
        node.stop()
    line.send({"kind": "farewell", "node": node.report(), "logs": node.logs(whole=whole_logs)})
    line.finish(spec.deadlines.stop_s)


def _meet(node: Node, token: str, stop: StopRequest) -> "Optional[tuple[Line, str]]":
    """The line to rank 0 and the scheduler's address; None when rank 0's part of the run is over already."""
    spec = node.spec
    where = by_name.place(os.environ)
    if where is not None:
        deadline = time.monotonic() + spec.deadlines.start_s
        met = by_name.meet(where, token, deadline, stop.asked, rank=node.rank, order=spec.order, facts=node.facts)
        return met and (met[0], str(met[1]["scheduler"]))
    before: Set[int] = recorded(node.runs_dir, spec.run)

    def over() -> bool:
        return finished(node.runs_dir, spec.run) is not None or recorded(node.runs_dir, spec.run) != before

    def stopped() -> bool:
        return stop.asked() or over()

    path = rendezvous.path_for(node.runs_dir, spec.run, token)
    try:
        facts = rendezvous.wait(path, token, time.monotonic() + spec.deadlines.start_s, stopped)
        host, port = facts["hub"]
        line = join(
            host, port, token, rank=node.rank, order=spec.order, facts=node.facts, timeout_s=spec.deadlines.start_s
        )
    except rendezvous.RendezvousTimeoutError:
        if over():
            return None
        raise
    except OSError:  # rank 0 has just closed its door: it is about to write its record, or it is dead
        if _soon(stopped, spec.deadlines.silence_s) and over():
            return None
        raise
    return line, facts["scheduler"]


def _soon(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(TICK_S * (0.5 + random.random()))
    return True


def _until_stop(node: Node, line: Line, stop: StopRequest) -> bool:
    """True when rank 0 wants whole logs."""
    told = False
    while True:
        stop.check()
        node.load.tick()
        line.beat()
        for message in line.receive():
            if message["kind"] == STOP:
                return bool(message["whole_logs"])
        if not line.open or line.silence() > node.spec.deadlines.silence_s:
            return True
        child = node.dead()
        if child is not None and not told:
            told = True
            line.send({"kind": "died", "cause": child.cause()})
        time.sleep(TICK_S)
