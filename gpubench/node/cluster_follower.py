"""A node of a standing cluster that joins its scheduler: it runs workers until the cluster ends or it leaves."""

import math
import os
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from gpubench.node import rendezvous
from gpubench.node.cluster_state import ClusterEndedError, rank_of, time_left
from gpubench.node.control_channel import Connection, join
from gpubench.node.process import Child, command
from gpubench.node.run_node import RunNode
from gpubench.node.spec.cluster import GONE, RETIRED
from gpubench.node.stop import IDLE_S, TICK_S, StopRequest
from gpubench.node.workloads.clock import poll_until

CONNECT_S = 60.0
NEARLY_OVER, GIVEN_BACK = "the job's time is nearly over", "it is given back"
"""Why a node leaves; any other reason is a signal's, which nobody asked of this cluster."""


def follow_head(node: RunNode, directory: Path, token: str, stop: StopRequest, *, further: bool) -> str:
    """Run this node's workers until rank 0 requests a stop, this node leaves, or rank 0 is gone; returns the reason.

    Raises:
        RendezvousTimeoutError: there is no cluster to join.
        ClusterEndedError: every worker of this node died.
    """
    began = time.monotonic()
    node.start(node.workers())
    path = rendezvous.path_for(directory, node.spec.campaign, token)
    facts = {"job": node.spec.job, "host": node.facts["host"], "planned": node.spec.workers_per_node, "began": began}
    connection, scheduler = _meet(node, path, token, stop, facts)
    try:
        node.tell_address(scheduler)
        reason, state = _Member(node, connection, scheduler if further else None, stop).until_stop()
    finally:
        node.stop()
    connection.send({"kind": "final_report", "state": state})
    connection.finish(node.spec.deadlines.stop_s)
    return reason


def _meet(
    node: RunNode, path: Path, token: str, stop: StopRequest, own_facts: Dict[str, Any]
) -> Tuple[Connection, str]:
    """The connection to rank 0 and the scheduler's address. If rank 0 doesn't answer, its file may be old."""
    deadline = time.monotonic() + node.spec.deadlines.start_s

    def met() -> Optional[Tuple[Connection, str]]:
        stop.check()
        facts = rendezvous.wait(path, token, deadline, stop.asked)
        hello = {**own_facts, "age_s": round(time.monotonic() - own_facts["began"], 3)}
        host, port = facts["server"]
        try:
            return join(host, port, token, rank=node.rank, facts=hello, timeout_s=10.0), str(facts["scheduler"])
        except OSError:
            if time.monotonic() > deadline:
                raise
            return None

    meeting = poll_until(met, math.inf, TICK_S, longest_s=IDLE_S, jitter=True)
    assert meeting is not None
    return meeting


class _Member:
    """This node in the cluster: ``why`` it leaves, if it does, and by when it must have left."""

    def __init__(self, node: RunNode, connection: Connection, scheduler: Optional[str], stop: StopRequest) -> None:
        """``scheduler``: its address; None in the job that has it: the cluster ends with this job."""
        self.node, self.connection, self.scheduler, self.stop = node, connection, scheduler, stop
        self.why, self.leave_by = "", math.inf
        self._retiring: Optional[Child] = None
        self._told: Set[str] = set()

    def until_stop(self) -> Tuple[str, str]:
        """Serve until this node ends; returns the reason, and the state in which it leaves the cluster.

        Raises:
            ClusterEndedError: every worker of this node died.
        """
        while True:
            self.connection.beat()
            for message in self.connection.receive():
                if message["kind"] == "stop":
                    return "rank 0 requested the stop", GONE
                if message["kind"] == "leave":
                    self.why = self.why or GIVEN_BACK
            if not self.connection.open or self.connection.silence() > self.node.spec.deadlines.silence_s:
                return "rank 0 is gone", GONE
            self._leave()
            retired = self._retiring is not None and self._retiring.code == 0
            if retired or time.monotonic() > self.leave_by:
                return self.why, RETIRED if retired and not self.stop.asked() else GONE
            self._tell_deaths()
            self.stop.wait([self.connection.sock], TICK_S if self.node.starting() else IDLE_S)

    def _leave(self) -> None:
        """Let Dask move this node's data if rank 0 says so, on a request to end, or near the end of the job.

        A node that is only given back stays if there is no place for its data.
        """
        grace = self.node.spec.deadlines.stop_s
        if self.leave_by == math.inf and (self.stop.asked() or time_left() < 2 * grace):
            self.why, self.leave_by = self.stop.reason or NEARLY_OVER, time.monotonic() + grace / 2
        if self.why and self._retiring is None and self.scheduler is not None:
            arguments = ("--address", self.scheduler, "--rank", str(self.node.rank), "--parent", str(os.getpid()))
            self._retiring = Child("retire", command("retire", *arguments), self.node.env, self.node.scratch)
            if self.why != GIVEN_BACK:
                self.connection.send({"kind": "leaves", "reason": self.why})
        if self._retiring is not None and self._retiring.code and self.leave_by == math.inf:
            self.connection.send({"kind": "stays", "reason": self._retiring.cause()["how"]})
            self.why, self._retiring = "", None

    def _tell_deaths(self) -> None:
        children = self.node.children
        for child in children:
            if child.code is not None and child.name not in self._told:
                self._told.add(child.name)
                if child.code != 0 or not self.why:
                    self.connection.send({"kind": "died", "cause": child.cause()})
        if len(self._told) == len(children) and all(child.code for child in children):
            raise ClusterEndedError("every worker of this node died")


def workers_on(rank: int, dask_scheduler: Any) -> List[str]:
    """Addresses of the workers on this node, for ``run_on_scheduler``."""
    return [address for address, worker in dask_scheduler.workers.items() if rank_of(str(worker.name)) == rank]


def retire(address: str, rank: int) -> int:
    """``node.pyz retire``: Dask moves the data of a node's workers to the others, and closes them.

    Raises:
        SystemExit: some have data for which the others have no place.
    """
    from distributed import Client

    client = Client(address, timeout=CONNECT_S, name="gpubench-retire", set_as_default=False)
    try:
        retired: Set[str] = set()
        while True:  # a worker may register while others are retired
            left = set(client.run_on_scheduler(workers_on, rank))
            if not left or left & retired:
                break
            client.retire_workers(workers=sorted(left), close_workers=True)
            retired |= left
    finally:
        client.close()
    if left:
        raise SystemExit(f"no other worker has a place for the data of {', '.join(sorted(left))}")
    return 0
