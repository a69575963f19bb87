"""A look at a standing cluster: what ``gpubench cluster verify`` and ``affinity`` ask, and what they are told.

Node half: Python 3.9, standard library only.
"""

import dataclasses
from typing import Any, Dict, List

from gpubench.spec.plain import from_plain, parse_object, to_json

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
