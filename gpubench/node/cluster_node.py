"""The supervisor of every other node of a standing cluster: it runs workers and is connected to rank 0."""

import math
import time
from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple

from gpubench.node import rendezvous
from gpubench.node.cluster_head import ClusterEndedError, time_left
from gpubench.node.control_channel import Connection, join
from gpubench.node.node import RunNode
from gpubench.node.stop import StopRequest
from gpubench.spec.cluster import ClusterSpec
from gpubench.workloads.polling import poll_until

TICK_S = 0.1


def follow_head(node: RunNode, cluster: ClusterSpec, directory: Path, token: str, stop: StopRequest) -> str:
    """Run this node's workers until rank 0 says stop or is gone; returns why it ended.

    Who is asked to end, or whose job's time is nearly over, first has rank 0 retire its workers: what they hold moves.

    Raises:
        RendezvousTimeoutError: there is no cluster to join.
        ClusterEndedError: every worker of this node died.
    """
    began = time.monotonic()
    node.start_workers()
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
    """The connection to rank 0 and the scheduler's address. A rank 0 that doesn't answer may be a file that is old."""
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

    found = poll_until(met, math.inf, TICK_S, jitter=True)
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
                return "rank 0 said stop"
        if not connection.open or connection.silence() > node.spec.deadlines.silence_s:
            return "rank 0 is gone"
        reason = stop.reason if stop.asked() else "the job's time is nearly over" if time_left() < 2 * grace else None
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
        time.sleep(TICK_S)
