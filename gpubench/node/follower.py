"""The supervisor of every other rank: workers, or the scheduler, and a connection to the rank that leads."""

import os
import time
from typing import Optional, Set

from gpubench.node import rendezvous
from gpubench.node.control_channel import STOP, Connection, join
from gpubench.node.run_node import RunNode
from gpubench.node.scratch import fault
from gpubench.node.stop import IDLE_S, TICK_S, StoppedError, StopRequest
from gpubench.node.turns import CONTINUE, CONTINUED, PAUSE, PAUSED, pause, resume
from gpubench.node.workloads.clock import poll_until
from gpubench.node.writer.run_dir import recorded


def follow(node: RunNode, token: str, stop: StopRequest, before: Set[int]) -> None:
    """Run this rank's processes until the leader ends the run, dies or is silent; no process is left.

    Returns at once if rank 0 has written its record already: one that isn't among those of ``before``.

    Raises:
        RendezvousTimeoutError: rank 0 didn't show up.
        OSError: rank 0 doesn't answer.
        StoppedError: a signal ended it.
    """
    spec, refused = node.spec, None
    try:
        node.start([*node.scheduler(), *node.workers()])
    except OSError as error:  # reported to rank 0 below
        refused = error
    connection = _meet(node, token, stop, before)
    if connection is None:
        return
    if refused is not None:
        _tell(node, connection, refused)
    try:
        whole_logs = _until_stop(node, connection, stop)
    except StoppedError as stopped:
        connection.send({"kind": "stopped", "reason": str(stopped)})
        raise
    except OSError as error:
        _tell(node, connection, error)
        raise
    finally:
        node.stop()
    connection.send({"kind": "final_report", "node": node.report(), "logs": node.logs(whole=whole_logs)})
    connection.finish(spec.deadlines.stop_s)


def _tell(node: RunNode, connection: Connection, error: OSError) -> None:
    cause = {"process": "supervisor", "how": f"the node's system refused: {error}", "last_lines": []}
    connection.send({"kind": "died", "cause": {**cause, "disk": fault(node.scratch)}})


def _meet(node: RunNode, token: str, stop: StopRequest, before: Set[int]) -> Optional[Connection]:
    """The connection to the leader; None if the run is over already."""
    spec = node.spec
    where = rendezvous.rank_0_address(os.environ)
    if where is not None:
        deadline = time.monotonic() + spec.deadlines.start_s
        return rendezvous.meet(where, token, deadline, stop, rank=node.rank, order=spec.order, facts=node.facts)

    def over() -> bool:
        return recorded(node.runs_dir, spec.run) != before

    def stopped() -> bool:
        return stop.asked() or over()

    path = rendezvous.path_for(node.runs_dir, spec.run, token)
    try:
        facts = rendezvous.wait(path, token, time.monotonic() + spec.deadlines.start_s, stopped)
        host, port = facts["server"]
        return join(
            host, port, token, rank=node.rank, order=spec.order, facts=node.facts, timeout_s=spec.deadlines.start_s
        )
    except rendezvous.RendezvousTimeoutError:
        if over():
            return None
        raise
    except OSError:  # rank 0 doesn't listen any more: it is about to write its record, or it is dead
        poll_until(stopped, time.monotonic() + spec.deadlines.silence_s, TICK_S, longest_s=IDLE_S, jitter=True)
        if over():
            return None
        raise


def _until_stop(node: RunNode, connection: Connection, stop: StopRequest) -> bool:
    """Serve the leader until the run ends; True if it wants whole logs."""
    told, awaits_scheduler = False, node.has_scheduler
    while True:
        stop.check()
        pause_s = node.load.tick()
        connection.beat()
        for message in connection.receive():
            if message["kind"] == STOP:
                return bool(message["whole_logs"])
            if message["kind"] == "scheduler":
                node.tell_address(message["address"])
            if message["kind"] == PAUSE:
                pause(node.children)
                connection.send({"kind": PAUSED})
            if message["kind"] == CONTINUE:
                resume(node.children)
                connection.send({"kind": CONTINUED})
        if not connection.open or connection.silence() > node.spec.deadlines.silence_s:
            return True
        if awaits_scheduler:
            address = node.scheduler_address()
            if address:
                awaits_scheduler = False
                connection.send({"kind": "scheduler", "address": address})
        child = node.dead()
        if child is not None and not told:
            told = True
            connection.send({"kind": "died", "cause": child.cause()})
        stop.wait([connection.sock], min(pause_s, TICK_S) if awaits_scheduler or node.starting() else pause_s)
