"""A look at a standing cluster: what ``gpubench cluster verify`` and ``affinity`` are told."""

import dataclasses
from typing import Any, Dict, List

from gpubench.node.spec.plain import Document

INSPECT_RECORD = "gpubench/looked/1"


@dataclasses.dataclass
class InspectRecord(Document):
    """What was found. ``unreachable`` is why nobody answers, or empty.

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
        """Those of ``processes`` that are workers."""
        return [process for process in self.processes if process["role"] == "worker"]
