"""What decides a plan: the user's wishes for a campaign, on a site whose profile has been read. Pure."""

import dataclasses
from collections.abc import Sequence

from gpubench.model.known_issue import KnownIssue
from gpubench.model.own_workload import OwnWorkload
from gpubench.model.site import Site
from gpubench.model.variant import Variant
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.catalogue import CATALOGUE, Workload
from gpubench.plan.budget import FirstPass
from gpubench.stats.data import ComparisonInput

PROTOCOLS = ("tcp", "ucx")


@dataclasses.dataclass(frozen=True)
class History:
    """An earlier campaign of the same shape here: median seconds of a run, and its comparisons as a pilot.

    ``source`` says where the seconds come from if they aren't its own.
    """

    campaign: str
    run_s: float
    runs: int
    pilot: Sequence[ComparisonInput] = ()
    source: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """Everything that decides which runs a plan has; images are named by the variants, and need not be there.

    An option of the command line that has the name of a field decides that field. A field that the plan has, too, is
    recorded there.

    Args:
        workers: counts per node; none: the profile's.
        budget_s: seconds; ``budget_firm``: the user gave them (the site's own are a default, not a limit).
        machine_cores: of one node, 0: not known; so is ``machine_memory``, in bytes.
        known_issues: all rules that there are.
        own: the workloads that come from files of the user.
        not_interleaved: why, if the profile left that open.
        chooses_repetitions: a first pass may choose them.
        tried: the first pass that the repetitions follow from; ``repetitions`` says in lines how.
    """

    gpubench: str
    site: Site
    suite: str
    workloads: Sequence[WorkloadSpec]
    variants: Sequence[Variant]
    nodes: Sequence[int]
    blocks: int
    seed: int
    protocol: str
    margin: float
    machine_cores: int
    machine_memory: int
    workers: Sequence[int] = ()
    budget_s: float | None = None
    budget_firm: bool = False
    history: History | None = None
    known_issues: Sequence[KnownIssue] = ()
    own: Sequence[OwnWorkload] = ()
    not_interleaved: str = ""
    chooses_repetitions: bool = False
    tried: FirstPass | None = None
    repetitions: Sequence[str] = ()

    @property
    def device(self) -> str:
        """On which workers compute: ``cpu``, ``gpu``, or ``auto``, which each node settles."""
        return self.site.device

    def describe(self, planned: WorkloadSpec) -> Workload:
        """What is known of a workload; raises KeyError for one that is neither in the catalogue nor in ``own``."""
        mine = [workload.described for workload in self.own if workload.is_of(planned)]
        return mine[0] if mine else CATALOGUE[planned.name]
