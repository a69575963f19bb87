"""A standing cluster: what its rank 0 is asked and tells, and what a look at it finds."""

import dataclasses
from typing import Any, Dict, List

from gpubench.node.spec.plain import Document

CLUSTER_STATE = "gpubench/cluster-state/1"
INSPECT_RECORD = "gpubench/looked/1"

STATE_FILE = "state.json"
SCHEDULER_FILE = "scheduler.json"
TOKEN_FILE = "token"  # noqa: S105 - the name of a file
REQUESTS = "requests"
"""Directory of what is asked of rank 0, in ``<id>.json``: ``leave`` (ranks), answered by the states of these nodes, or
``stop`` (the reason), answered by its end."""

STARTING, READY, ENDED = "starting", "ready", "ended"
JOINED, LEAVING, RETIRED, GONE = "joined", "leaving", "retired", "gone"


@dataclasses.dataclass
class ClusterState(Document):
    """``state.json`` in the cluster's directory: how it stands, as rank 0 last wrote it.

    ``phase`` is ``starting ready ended``, ``reason`` why it ended. ``nodes`` are those that ever joined: ``rank job
    host planned connected state``, the last ``joined leaving retired gone``, and ``request``, the id of the last one by
    which it was to leave; if it is ``joined`` after that, its data has no other place. ``jobs`` hold seconds from the
    start of a job's first supervisor to its first worker, half of them and all (``first_worker half_workers
    all_workers``), and their number (``workers``). ``events`` are what went wrong, each with ``at`` (UTC), ``what``,
    and ``last_lines`` of a process that died. Times are UTC, ISO 8601.
    """

    SCHEMA = CLUSTER_STATE

    schema: str
    cluster: str
    phase: str
    began_at: str
    changed_at: str
    reason: str = ""
    address: str = ""
    nodes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    jobs: Dict[str, Dict[str, float]] = dataclasses.field(default_factory=dict)
    events: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def connected(self) -> int:
        return sum(int(node["connected"]) for node in self.nodes)


@dataclasses.dataclass
class InspectRecord(Document):
    """What ``gpubench cluster verify`` and ``affinity`` are told. ``unreachable`` is why nobody answers, or empty.

    ``versions`` by process (``client``, ``scheduler``, a worker's address) and package. ``processes`` are the answers
    of scheduler and workers (see ``inspect_process``), workers with ``name threads memory_limit`` (bytes) as the
    scheduler knows them; only where client and cluster have the same Python, dask and distributed.
    """

    SCHEMA = INSPECT_RECORD

    schema: str
    unreachable: str = ""
    versions: Dict[str, Dict[str, str]] = dataclasses.field(default_factory=dict)
    processes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def workers(self) -> List[Dict[str, Any]]:
        return [process for process in self.processes if process["role"] == "worker"]
