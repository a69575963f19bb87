"""A look at a standing cluster: what ``gpubench cluster verify`` and ``affinity`` ask, and what they are told.

Node half: Python 3.9, standard library only.
"""

import dataclasses
import json
from typing import Any, Dict, List

from gpubench.spec.plain import SpecError, from_plain, to_plain

LOOK = "gpubench/look/1"
LOOKED = "gpubench/looked/1"
LOOKED_FILE = "looked.json"


@dataclasses.dataclass(frozen=True)
class LookSpec:
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
        return json.dumps(to_plain(self), indent=1, sort_keys=True) + "\n"

    @staticmethod
    def parse(text: str) -> "LookSpec":
        """Read it; raises SpecError."""
        return from_plain(LookSpec, _object(text, LOOK))


@dataclasses.dataclass
class LookedRecord:
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
        return json.dumps(to_plain(self), indent=1, sort_keys=True, default=str) + "\n"

    @staticmethod
    def parse(text: str) -> "LookedRecord":
        """Read it; raises SpecError."""
        return from_plain(LookedRecord, _object(text, LOOKED))


def _object(text: str, schema: str) -> Dict[str, Any]:
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise SpecError(f"not JSON: {error}") from error
    if not isinstance(plain, dict) or plain.get("schema") != schema:
        raise SpecError(f"not a {schema}")
    return plain
