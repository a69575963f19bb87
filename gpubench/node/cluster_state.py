"""The nodes and workers of a standing cluster, in the state that rank 0 writes to a file, and when it ends."""

import os
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from gpubench.node.spec.cluster import (
    CLUSTER_STATE,
    ENDED,
    GONE,
    JOINED,
    LEAVING,
    READY,
    STARTING,
    STATE_FILE,
    ClusterState,
)
from gpubench.node.supervisor import registration_phases
from gpubench.node.workloads import clock
from gpubench.node.workloads.clock import utc_now
from gpubench.node.writer.atomic import write_atomic

END_VARIABLE = "GPUBENCH_END"


class ClusterEndedError(Exception):
    """The cluster can't go on; the message says why."""


def time_left() -> float:
    """Seconds until the job's end, which its script exported; infinite without one."""
    end = os.environ.get(END_VARIABLE, "")
    return float(end) - clock.now() if end.isdigit() else float("inf")


def rank_of(name: str) -> int:
    """``worker-3-0`` → 3, the rank of its node; -1 for a worker that isn't ours."""
    parts = name.split("-")
    return int(parts[1]) if len(parts) > 2 and parts[0] == "worker" and parts[1].isdigit() else -1


WRITE_S = 0.3
"""Shortest time between two writes, to spare a shared file system."""


class ClusterStateFile:
    def __init__(self, directory: Path, cluster: str) -> None:
        now = utc_now()
        self.path = directory / STATE_FILE
        self.state = ClusterState(CLUSTER_STATE, cluster, STARTING, began_at=now, changed_at=now)
        self._began: Dict[str, float] = {}
        self._registered: Dict[int, List[float]] = {}
        self._changed = True
        self._written = 0.0

    def joined(self, rank: int, job: str, host: str, planned: int, age_s: float) -> None:
        """A node's supervisor has connected, ``age_s`` seconds after it was started."""
        began = time.time() - age_s
        self._began[job] = min(began, self._began.get(job, began))
        self.state.nodes = [node for node in self.state.nodes if node["rank"] != rank]
        self.state.nodes.append(
            {"rank": rank, "job": job, "host": host, "planned": planned, "connected": 0, "state": JOINED}
        )
        self._changed = True

    def count(self, workers: List[Dict[str, Any]]) -> None:
        now: Dict[int, List[float]] = {}
        for worker in workers:
            now.setdefault(rank_of(str(worker["name"])), []).append(float(worker["at"]))
        if now == self._registered and not self._changed:
            return
        self._registered, self._changed = now, True
        for node in self.state.nodes:
            node["connected"] = len(now.get(node["rank"], []))
        for job, began in self._began.items():
            self._time(job, began)

    def move(self, rank: int, state: str, request: str = "") -> None:
        """A node is in another state, by this request if by one."""
        for node in self.state.nodes:
            if node["rank"] == rank:
                node.update({"state": state, **({"request": request} if request else {})})
        self._changed = True

    def event(self, what: str, cause: Optional[Dict[str, Any]] = None) -> None:
        self.state.events.append({"at": utc_now(), "what": what, "last_lines": (cause or {}).get("last_lines", [])})
        self._changed = True

    def complete(self, job: str, nodes: int) -> bool:
        """Whether that many nodes of the job have joined, with every worker."""
        rows = [node for node in self.state.nodes if node["job"] == job]
        return len(rows) == nodes and all(node["connected"] >= node["planned"] for node in rows)

    def ready(self, address: str) -> None:
        self.state.phase, self.state.address, self._changed = READY, address, True

    def end(self, reason: str) -> None:
        self.state.phase, self.state.reason = ENDED, reason
        for node in self.state.nodes:
            node["connected"] = 0
            node["state"] = GONE if node["state"] in (JOINED, LEAVING) else node["state"]
        self._changed, self._written = True, 0.0
        self.write()

    def write(self) -> None:
        if self._changed and time.monotonic() - self._written > WRITE_S:
            self.state.changed_at = utc_now()
            write_atomic(self.path, self.state.dump().encode("utf-8"), mode=0o600)
            self._changed, self._written = False, time.monotonic()

    def _time(self, job: str, began: float) -> None:
        """Seconds to the first, half and all of the workers that the job's nodes have, until all were there once."""
        rows = [node for node in self.state.nodes if node["job"] == job]
        planned = sum(int(node["planned"]) for node in rows)
        times = [round(at - began, 3) for node in rows for at in self._registered.get(node["rank"], [])]
        known = self.state.jobs.get(job, {})
        if times and int(known.get("workers", 0)) < planned:
            phases = registration_phases(sorted(times))
            if len(times) < planned:
                phases = {"first_worker": phases["first_worker"]}
            self.state.jobs[job] = {**phases, "workers": len(times)}
