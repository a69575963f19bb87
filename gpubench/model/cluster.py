"""The records of a standing cluster."""

import pydantic

from gpubench.model.base import Record
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.model.variant import Variant

CLUSTER = "gpubench/cluster/1"
CLUSTER_JOB = "gpubench/cluster-job/1"
PROTOCOLS = ("tcp", "tls", "ucx")
TLS_FOLDER = "tls"


class ClusterRecord(Record):
    """``cluster.json``, never rewritten.

    ``directory`` is the cluster's, absolute and without symbolic links: its scheduler's file and its keys are used by
    that path. ``identity`` tells it from every other cluster, also of the same name. ``memory_limit`` is bytes per
    worker; 0: half of the node's over its workers, worked out on the node. ``workarounds`` are variables that known
    issues set.
    """

    schema_: str = pydantic.Field(alias="schema", default=CLUSTER)
    name: str
    identity: str
    directory: str
    created_at: str
    gpubench: str
    site: Site
    variant: Variant
    image: Image
    protocol: str
    memory_limit: int
    limit_s: float
    workarounds: dict[str, str] = pydantic.Field(default_factory=dict)


class ClusterJob(Record):
    """One allocation of the cluster. Ranks are counted through all jobs; the scheduler is in the first.

    Where it is there, says the site's ``layout.scheduler``.
    """

    schema_: str = pydantic.Field(alias="schema", default=CLUSTER_JOB)
    job: str
    nodes: int
    first_rank: int
    limit_s: float

    @property
    def leads(self) -> bool:
        """Whether the scheduler is in this one."""
        return self.first_rank == 0
