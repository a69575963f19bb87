"""What the tool asks of a cluster that somebody else started, and what it is told: ``attach.json``, ``attached.json``.

A look at a standing cluster: what ``gpubench cluster verify`` and ``affinity`` ask, and what they are told.
"""

import dataclasses
from typing import Any, Dict, List, Optional

from gpubench.spec.plain import from_plain, parse_object, to_json
from gpubench.spec.records import WorkloadRecord
from gpubench.spec.run import WorkloadSpec

ATTACH_SPEC = "gpubench/attach/1"
ATTACH_RECORD = "gpubench/attached/1"
ATTACH_FILE = "attached.json"

UNREACHABLE = "unreachable"
VERSIONS = "versions"
REFUSED = "refused"


@dataclasses.dataclass(frozen=True)
class AttachSpec:
    """Look at the cluster of the scheduler at ``address``, and measure ``workload`` there if one is named.

    ``device`` is ``auto cpu gpu``, ``connect_s`` how long the scheduler may take to answer.
    """

    schema: str
    address: str
    device: str
    connect_s: float
    workload: Optional[WorkloadSpec]

    def dump(self) -> str:
        """JSON text."""
        return to_json(self)

    @staticmethod
    def parse(text: str) -> "AttachSpec":
        """Read it; raises SpecError."""
        plain = parse_object(text, ATTACH_SPEC)
        if plain.get("workload") is not None:
            plain["workload"] = from_plain(WorkloadSpec, plain["workload"])
        return from_plain(AttachSpec, plain)


@dataclasses.dataclass
class AttachRecord:
    """What was found and measured. ``refusal`` is ``unreachable versions refused`` or empty, ``reason`` its one line.

    ``workers`` are what the scheduler says of each (``address host threads memory_limit``, bytes), ``processes`` what
    each says of itself; ``versions`` are those of the client, and so of the cluster. ``warnings`` are about what may
    disturb the figures.
    """

    schema: str
    refusal: str = ""
    reason: str = ""
    device: str = ""
    protocol: str = ""
    versions: Dict[str, str] = dataclasses.field(default_factory=dict)
    workers: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    processes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    warnings: List[str] = dataclasses.field(default_factory=list)
    workload: Optional[WorkloadRecord] = None

    def dump(self) -> str:
        """JSON text."""
        return to_json(self, default=str)

    @staticmethod
    def parse(text: str) -> "AttachRecord":
        """Read it; raises SpecError."""
        plain = parse_object(text, ATTACH_RECORD)
        if plain.get("workload") is not None:
            plain["workload"] = from_plain(WorkloadRecord, plain["workload"])
        return from_plain(AttachRecord, plain)


INSPECT_SPEC = "gpubench/look/1"
INSPECT_RECORD = "gpubench/looked/1"
INSPECT_FILE = "looked.json"


@dataclasses.dataclass(frozen=True)
class InspectSpec:
    """Look at the cluster of the scheduler at ``address``, which may take ``connect_s`` seconds to answer.

    ``places`` says that every worker is to be asked where it may run; one that is busy may take ``answer_s`` seconds.
    """

    schema: str
    address: str
    connect_s: float
    places: bool
    answer_s: float

    def dump(self) -> str:
        """JSON text."""
        return to_json(self)

    @staticmethod
    def parse(text: str) -> "InspectSpec":
        """Read it; raises SpecError."""
        return from_plain(InspectSpec, parse_object(text, INSPECT_SPEC))


@dataclasses.dataclass
class InspectRecord:
    """What was found. ``unreachable`` is why nobody answers, or empty.

    ``versions`` by process (``client``, ``scheduler``, a worker's address) and package; ``workers`` as the scheduler
    knows them (``address name host threads memory_limit``, bytes). ``processes`` are what scheduler and workers say of
    themselves, ``places`` where each worker may run (``placed``), both only where client and cluster have the same
    Python, dask and distributed.
    """

    schema: str
    unreachable: str = ""
    versions: Dict[str, Dict[str, str]] = dataclasses.field(default_factory=dict)
    workers: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    processes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    places: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    def dump(self) -> str:
        """JSON text."""
        return to_json(self, default=str)

    @staticmethod
    def parse(text: str) -> "InspectRecord":
        """Read it; raises SpecError."""
        return from_plain(InspectRecord, parse_object(text, INSPECT_RECORD))
