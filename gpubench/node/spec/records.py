"""What a run leaves behind beside its samples: its exit code, and the ``run.json`` that is written last."""

import dataclasses
from typing import Any, Dict, List, Optional

from gpubench.node.spec.run import WorkloadSpec

EXIT_OK = 0
EXIT_NODE = 40
"""Of a supervisor: no record could be written, or the node is not usable for further runs."""

RUN_RECORD = "gpubench/run/1"
PROVENANCE = "gpubench/provenance/1"

RUN_FILE = "run.json"
SAMPLES_FILE = "samples.jsonl"
LINKS_FILE = "links.jsonl"
PROVENANCE_FILE = "provenance.json"
LOGS_FILE = "logs.zip"
UCX_CONFIGURATIONS = ("ucx_info-1.txt", "ucx_info-2.txt")
"""Files in it, of runs of the first block: two answers of ``ucx_info -c -a -f`` on the first node."""
HASHED_FILES = (SAMPLES_FILE, LINKS_FILE, PROVENANCE_FILE, LOGS_FILE)
"""What stands beside ``run.json`` in a run directory."""

RAN = ("ok", "failed")
"""The statuses of a run that ran to its end: a failed one is a result, and is not repeated."""
AFTER_A_FAILURE = "after the failure of"
"""How the reason of a workload begins that was skipped because one before it failed."""


@dataclasses.dataclass
class WorkloadRecord:
    """How one workload of the run ended. ``status`` is ``ok failed skipped``; ``details`` hold figures of the check."""

    workload: str
    backend: str
    params: Dict[str, Any]
    params_id: str
    reps: int
    warmup: int
    status: str
    reason: str = ""
    details: Dict[str, Any] = dataclasses.field(default_factory=dict)


def workload_record(planned: WorkloadSpec, status: str, reason: str = "") -> WorkloadRecord:
    return WorkloadRecord(
        workload=planned.name,
        backend=planned.backend,
        params=dict(planned.params),
        params_id=planned.params_id,
        reps=planned.reps,
        warmup=planned.warmup,
        status=status,
        reason=reason,
    )


@dataclasses.dataclass
class RunRecord:
    """How the run ended. Written last and by rename: a run directory without it is ``lost``.

    ``image`` is the image's id (``model/image.py``). ``transport`` is what UCX reported (``["tcp"]``), empty under
    ``tcp``. Times are UTC in ISO 8601, ``phases`` seconds by name: ``first_worker half_workers all_workers`` (from the
    supervisor's start to their registration), ``start`` (the client's wait), ``run``, ``stop``; of an interleaved block
    also ``waited``, while other runs had their turns, which is in none of the others.
    """

    schema: str
    campaign: str
    site: str
    job: str
    block: int
    run: str
    attempt: int
    order: int
    variant: str
    image: str
    ucx_version: str
    protocol: str
    device: str
    nodes: int
    workers_per_node: int
    threads_per_worker: int
    status: str
    reason: str
    started_at: str
    ended_at: str
    transport: List[str] = dataclasses.field(default_factory=list)
    hosts: List[str] = dataclasses.field(default_factory=list)
    warnings: List[str] = dataclasses.field(default_factory=list)
    phases: Dict[str, float] = dataclasses.field(default_factory=dict)
    workloads: List[WorkloadRecord] = dataclasses.field(default_factory=list)
    node_half: str = ""
    cause: Optional[Dict[str, Any]] = None
    """Of a failed run: what died, where, and its last log lines."""
    files: Dict[str, str] = dataclasses.field(default_factory=dict)
    """SHA-256 of every other file of the run by its name, as rank 0 left it."""
