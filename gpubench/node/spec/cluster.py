"""A standing cluster: what one job of it is told, and what its rank 0 tells.

``jobs/<job>/specs/cluster.json`` and ``state.json`` in the cluster's directory. Node half: Python 3.9, standard library
only.
"""

import dataclasses
from typing import Any, Dict, List

from gpubench.node.spec.plain import Document

CLUSTER_SPEC = "gpubench/cluster-spec/1"
CLUSTER_STATE = "gpubench/cluster-state/1"

STATE_FILE = "state.json"
SCHEDULER_FILE = "scheduler.json"
TOKEN_FILE = "token"  # noqa: S105 - the name of a file
REQUESTS = "requests"
"""Directory of what is asked of rank 0, in ``<id>.json``: ``retire`` (ranks), answered in ``<id>.answer``, or ``stop``
(the reason), answered by its end."""

STARTING, READY, ENDED = "starting", "ready", "ended"
JOINED, RETIRED, GONE = "joined", "retired", "gone"


@dataclasses.dataclass(frozen=True)
class ClusterSpec(Document):
    """One job of a standing cluster.

    ``leads`` says that its rank 0 holds the scheduler. Ranks are counted through all jobs: this one's begin with
    ``first_rank``. ``run`` is the file beside this one that says what every node's processes are like. ``connect``
    comes to stand in the scheduler's file, for people and for whoever looks at the cluster.
    """

    SCHEMA = CLUSTER_SPEC

    schema: str
    cluster: str
    job: str
    leads: bool
    first_rank: int
    run: str
    connect: Dict[str, Any]


@dataclasses.dataclass
class ClusterState(Document):
    """How the cluster stands, as rank 0 last wrote it.

    ``phase`` is ``starting ready ended``, ``reason`` why it ended. ``nodes`` are those that ever joined: ``rank job
    host planned connected state``, the last ``joined retired gone``. ``jobs`` hold seconds from the start of a job's
    first supervisor to its first worker, half of them and all (``first_worker half_workers all_workers``), and their
    number (``workers``). ``events`` are what went wrong, each with ``at`` (UTC), ``what``, and ``last_lines`` of a
    process that died. Times are UTC, ISO 8601.
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
        """How many workers are connected."""
        return sum(int(node["connected"]) for node in self.nodes)
