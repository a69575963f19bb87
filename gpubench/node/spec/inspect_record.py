"""A look at a standing cluster: what ``gpubench cluster verify`` and ``affinity`` ask, and what they are told."""

import dataclasses
from typing import Any, Dict, List

from gpubench.node.spec.plain import Document, to_json

INSPECT_SPEC = "gpubench/look/1"
INSPECT_RECORD = "gpubench/looked/1"
INSPECT_FILE = "looked.json"


@dataclasses.dataclass(frozen=True)
class InspectSpec(Document):
    """Look at the cluster of the scheduler at ``address``, which may take ``connect_s`` seconds to answer.

    ``places`` says that every worker is to be asked where it may run; one that is busy may take ``answer_s`` seconds.
    """

    SCHEMA = INSPECT_SPEC

    schema: str
    address: str
    connect_s: float
    places: bool
    answer_s: float


@dataclasses.dataclass
class InspectRecord(Document):
    """What was found. ``unreachable`` is why nobody answers, or empty.

    ``versions`` by process (``client``, ``scheduler``, a worker's address) and package; ``workers`` as the scheduler
    knows them (``address name host threads memory_limit``, bytes). ``processes`` are what scheduler and workers say of
    themselves, ``places`` where each worker may run (``placed``), both only where client and cluster have the same
    Python, dask and distributed.
    """

    SCHEMA = INSPECT_RECORD

    schema: str
    unreachable: str = ""
    versions: Dict[str, Dict[str, str]] = dataclasses.field(default_factory=dict)
    workers: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    processes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    places: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    def dump(self) -> str:
        """JSON text; what processes say of themselves may hold any value."""
        return to_json(self, default=str)
