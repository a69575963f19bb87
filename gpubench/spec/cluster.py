"""A standing cluster: what one job of it is told, and what its rank 0 tells.

``jobs/<job>/specs/cluster.json`` and ``state.json`` in the cluster's directory. Node half: Python 3.9, standard library
only.
"""

import dataclasses
import json
from typing import Any, Dict, List, Type, TypeVar

from gpubench.spec.plain import SpecError, from_plain, to_plain

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

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class ClusterSpec:
    """One job of a standing cluster.

    ``leads`` says that its rank 0 holds the scheduler. Ranks are counted through all jobs: this one's begin with
    ``first_rank``. ``run`` is the file beside this one that says what every node's processes are like. ``connect``
    comes to stand in the scheduler's file, for people and for whoever looks at the cluster.
    """

    schema: str
    cluster: str
    job: str
    leads: bool
    first_rank: int
    run: str
    connect: Dict[str, Any]

    def dump(self) -> str:
        """JSON text."""
        return json.dumps(to_plain(self), indent=1, sort_keys=True) + "\n"

    @staticmethod
    def parse(text: str) -> "ClusterSpec":
        """Read it; raises SpecError."""
        return _parse(ClusterSpec, text, CLUSTER_SPEC)


@dataclasses.dataclass
class ClusterState:
    """How the cluster stands, as rank 0 last wrote it.

    ``phase`` is ``starting ready ended``, ``reason`` why it ended. ``nodes`` are those that ever joined: ``rank job
    host planned connected state``, the last ``joined retired gone``. ``jobs`` hold seconds from the start of a job's
    first supervisor to its first worker, half of them and all (``first_worker half_workers all_workers``), and their
    number (``workers``). ``events`` are what went wrong, each with ``at`` (UTC), ``what``, and ``last_lines`` of a
    process that died. Times are UTC, ISO 8601.
    """

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

    def dump(self) -> str:
        """JSON text."""
        return json.dumps(to_plain(self), indent=1, sort_keys=True) + "\n"

    @staticmethod
    def parse(text: str) -> "ClusterState":
        """Read it; raises SpecError."""
        return _parse(ClusterState, text, CLUSTER_STATE)


def _parse(kind: Type[T], text: str, schema: str) -> T:
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise SpecError(f"not JSON: {error}") from error
    if not isinstance(plain, dict) or plain.get("schema") != schema:
        raise SpecError(f"not a {schema}")
    return from_plain(kind, plain)
