"""The run spec: everything that a node needs to know about one run, as one JSON file."""

import dataclasses
import functools
from typing import Any, Dict, List, Mapping, Sequence

from gpubench.node.spec.plain import Document, content_id
from gpubench.node.spec.turns import Turn

RUN_SPEC = "gpubench/run-spec/1"

RANK0 = "rank0"
LAUNCH_NODE = "launch-node"

# distributed's nanny sets these for its workers; ours run without one and get the same.
# https://distributed.dask.org/en/stable/worker-memory.html
PROCESS_DEFAULTS = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""What every process of a run gets unless site, image or variant say otherwise."""


_OF_GPU_MEMORY = ("cuda", "gdr_copy")
"""How UCX's transports for GPU memory begin."""


def needed_on(device: str, transports: Sequence[str]) -> List[str]:
    """Those of a site's needed transports that workers on a device can have: on the CPU none for GPU memory."""
    return [name for name in transports if device == "gpu" or not name.startswith(_OF_GPU_MEMORY)]


@dataclasses.dataclass(frozen=True)
class WorkloadSpec:
    """One workload as planned.

    ``params`` are complete and plain (bytes, seconds and counts as numbers). ``timeout_s`` bounds the workload as a
    whole: generating, warming up, all repetitions and the check.
    """

    name: str
    backend: str
    params: Mapping[str, Any]
    reps: int
    warmup: int
    timeout_s: float

    @functools.cached_property
    def params_id(self) -> str:
        """Hash of what makes two samples comparable: name, backend and parameters."""
        return content_id({"workload": self.name, "backend": self.backend, "params": dict(self.params)})


@dataclasses.dataclass(frozen=True)
class Deadlines:
    """Seconds that each wait may take at most."""

    start_s: float = 120.0
    """From the supervisor's start until every worker is connected."""
    stop_s: float = 30.0
    """From the end of the last workload until no process of the run lives on any node."""
    silence_s: float = 20.0
    """Without a sign of life between two supervisors."""


@dataclasses.dataclass(frozen=True)
class RunSpec(Document):
    """One cluster lifetime: one variant in one block.

    ``env`` is the whole of what image, site and variant set: its ``UCX_*`` must still hold when the workloads run.
    ``env_allow`` names the variables that may come from the shell that started the job. ``expect_transport`` are the
    transports (``tcp``, ``rc_mlx5`` …) that UCX may use, empty when any will do; ``need_transport`` those of which two
    workers that send each other data must have one, by where they are (``same_node``, ``between_nodes``).
    ``block_s`` is how long the whole block surely takes: no block starts that can't end in time. ``build_id`` is what
    the file ``build_manifest`` inside the image must say, empty where there is nothing to compare. ``rmm_pool`` is the
    size in bytes of every GPU worker's memory pool, ``none``, or ``default``: whatever the image has.

    Every node has a supervisor with its rank, from 0. ``scheduler_on`` is ``rank0``, or says where the scheduler has a
    supervisor of its own, whose rank follows those of the nodes: ``launch-node`` (which is none of the job's compute
    nodes) or ``own-set`` (of resources, on one of them). ``client_on`` is ``rank0``, or ``launch-node``: beside the
    scheduler there. The supervisor that has the client leads the run and writes its record.

    ``turns`` are this run's of an interleaved block, without its start and end, empty where runs follow one another;
    ``beside`` the block's other runs, whose processes live on the same nodes.
    """

    SCHEMA = RUN_SPEC
    PARTS = {"workloads": WorkloadSpec, "turns": Turn, "deadlines": Deadlines}  # noqa: RUF012

    schema: str
    campaign: str
    site: str
    job: str
    block: int
    run: str
    order: int
    variant: str
    image: str
    ucx_version: str
    binding: str
    protocol: str
    device: str
    nodes: int
    workers_per_node: int
    threads_per_worker: int
    memory_limit: int
    interface: str
    manifest: str
    env: Dict[str, str]
    env_allow: List[str]
    expect_transport: List[str]
    need_transport: Dict[str, List[str]]
    expect_ucx: str
    workloads: List[WorkloadSpec]
    deadlines: Deadlines
    block_s: float
    node_half: str = ""
    build_id: str = ""
    build_manifest: str = ""
    rmm_pool: str = "default"
    scheduler_on: str = RANK0
    client_on: str = RANK0
    turns: List[Turn] = dataclasses.field(default_factory=list)
    beside: List[str] = dataclasses.field(default_factory=list)

    @property
    def scheme(self) -> str:
        """Dask's name of the protocol: for ``ucx`` it depends on the binding that the image has."""
        if self.protocol != "ucx":
            return self.protocol
        return "ucx" if self.binding == "ucx-py" else self.binding

    @property
    def workers(self) -> int:
        return self.nodes * self.workers_per_node

    @property
    def scheduler_rank(self) -> int:
        return 0 if self.scheduler_on == RANK0 else self.nodes

    @property
    def leader_rank(self) -> int:
        return 0 if self.client_on == RANK0 else self.nodes

    @property
    def ranks(self) -> List[int]:
        return sorted({*range(self.nodes), self.scheduler_rank, self.leader_rank})

    def has_workers(self, rank: int) -> bool:
        """Whether a rank is a node's, and no supervisor apart.

        A standing cluster's ranks go on beyond ``nodes``; a scheduler of it that has a supervisor apart has rank -1.
        """
        return rank >= 0 and (rank < self.nodes or rank not in (self.scheduler_rank, self.leader_rank))

    def place(self, rank: int) -> str:
        """A rank in words: ``3``, or ``4 (launch-node)`` for a supervisor that is on none of the nodes."""
        return str(rank) if self.has_workers(rank) else f"{rank} ({self.scheduler_on})"
